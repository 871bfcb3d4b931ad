"""Dumps the Parquet files of neptune-exporter, which have one row per value."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from mlflow_serverless_dump.database import Database, metric_value
from mlflow_serverless_dump.ids import ORIGINAL_ID_TAG, derived, experiment_number
from mlflow_serverless_dump.report import Report, UsageError

_BATCH_ROWS = 20_000
#: Maximum length of a param's value in MLflow. Longer values become tags.
_MAX_PARAM = 6000
_VALUES = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value", "datetime": "datetime_value"}
_SERIES = ("float_series", "string_series", "histogram_series", "file_series")
_COLUMNS = ["project_id", "run_id", "attribute_path", "attribute_type", "step", "timestamp", *_VALUES.values(), "string_set_value", "file_value"]
_NOT_HELD = {
    "string_series": "values of string series: only the last one is kept, as a tag",
    "histogram_series": "values of histogram series are not kept",
}


@dataclass(frozen=True)
class Options:
    """Options of `mlflow-serverless-dump neptune`."""

    source: str
    to: str
    files: str | None
    step_multiplier: int


@dataclass
class _Run:
    """The content of a run, collected from all its rows, except points of metrics."""

    project: str
    id: str
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    system: dict[str, Any] = field(default_factory=dict)
    latest: dict[str, tuple] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    first: int | None = None
    last: int | None = None

    @property
    def key(self) -> str:
        """Returns the id of the run in MLflow."""
        return derived("neptune", self.project, self.id)


def dump(options: Options, report: Report) -> None:
    """Writes the runs of all Parquet files below a directory into a file: an experiment per project."""
    directory = Path(options.source)
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    runs = _files_of_runs(directory, report)
    if not runs and not report.has_failures:
        raise UsageError(f"{directory} contains no Parquet files of neptune-exporter")
    files = (options.files or (directory.absolute().parent / "files").as_uri()).rstrip("/")
    with Database(options.to, f"neptune:{directory.absolute()}") as database:
        for number, ((project, id_), parts) in enumerate(sorted(runs.items()), 1):
            if number % 100 == 1:
                report.progress(f"run {number} of {len(runs)}")
            version = f"{options.step_multiplier} {files} " + " ".join(f"{part.name}:{part.stat().st_size}:{part.stat().st_mtime_ns}" for part in parts)
            if database.is_complete("run", f"{project}\0{id_}", version):
                report.unchanged["runs"] += 1
                continue
            try:
                run = _read(database, _Run(project, id_), parts, options.step_multiplier, report)
                _write(database, run, files)
                database.complete("run", f"{project}\0{id_}", version)
                report.written["runs"] += 1
            except Exception as error:
                database.rollback()
                report.failed("run", f"{project} {id_}", error)
        for project in sorted({project for project, _ in runs}):
            _write_experiment(database, project, files)
            report.written["experiments"] += 1


def _files_of_runs(directory: Path, report: Report) -> dict[tuple[str, str], list[Path]]:
    """Returns the files with rows of each run."""
    runs: dict[tuple[str, str], list[Path]] = {}
    for file in sorted(directory.rglob("*.parquet")):
        try:
            with parquet.ParquetFile(file) as opened:
                for batch in opened.iter_batches(_BATCH_ROWS, columns=["project_id", "run_id"]):
                    for project, id_ in set(zip(batch["project_id"].to_pylist(), batch["run_id"].to_pylist(), strict=True)):
                        parts = runs.setdefault((project, id_), [])
                        if file not in parts:
                            parts.append(file)
        except Exception as error:
            report.failed("file", str(file), error)
    return runs


def _rows(run: _Run, parts: list[Path]) -> Iterator[dict[str, Any]]:
    for part in parts:
        with parquet.ParquetFile(part) as file:
            present = [name for name in _COLUMNS if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH_ROWS, columns=present):
                for row in batch.to_pylist():
                    if row["run_id"] == run.id and row["project_id"] == run.project:
                        yield row


def _read(database: Database, run: _Run, parts: list[Path], multiplier: int, report: Report) -> _Run:
    """Reads a run, and writes the points of its metrics while reading."""
    for table in ("metrics", "latest_metrics", "params", "tags", "runs"):
        database.delete(table, run_uuid=run.key)
    points: list[dict[str, Any]] = []
    for row in _rows(run, parts):
        path, kind = row["attribute_path"], row["attribute_type"]
        time = _milliseconds(row.get("timestamp"))
        if time is not None:
            run.first = min(time, run.first or time)
            run.last = max(time, run.last or time)
        if kind in _NOT_HELD:
            report.note(_NOT_HELD[kind])
        if kind == "float_series" and row["float_value"] is not None:
            points.append(_point(run, row, time or 0, multiplier, report))
            if len(points) >= _BATCH_ROWS:
                database.insert("metrics", points)
                points.clear()
        elif kind in ("file", "file_series"):
            _add_file(run, row)
        elif kind == "string_series" and row["string_value"] is not None:
            run.tags[path] = row["string_value"]
        elif kind == "string_set":
            run.tags[path] = json.dumps(sorted(row["string_set_value"] or []), ensure_ascii=False)
        elif kind in _VALUES:
            _add_value(run, path, row[_VALUES[kind]])
        elif kind not in _SERIES:
            report.note(f"attributes of type {kind} are not kept")
    database.insert("metrics", points)
    return run


def _point(run: _Run, row: dict[str, Any], time: int, multiplier: int, report: Report) -> dict[str, Any]:
    exact = (row["step"] or 0) * multiplier
    step = round(exact)
    if step != exact:
        report.note("steps with a fraction were rounded: use --step-multiplier")
    value, is_nan = metric_value(row["float_value"])
    key = row["attribute_path"]
    latest = (step, time, value, is_nan)
    run.latest[key] = max(latest, run.latest.get(key, latest))
    return {"run_uuid": run.key, "key": key, "value": value, "timestamp": time, "step": step, "is_nan": is_nan}


def _add_file(run: _Run, row: dict[str, Any]) -> None:
    location = (row["file_value"] or {}).get("path")
    if location:
        step = f"/{row['step'].normalize():f}" if row["attribute_type"] == "file_series" and row["step"] is not None else ""
        run.tags[f"neptune.file/{row['attribute_path']}{step}"] = location
        run.files.append(location)


def _add_value(run: _Run, path: str, value: Any) -> None:
    if value is None:
        return
    if path.startswith("sys/"):
        run.system[path] = value
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    if path.startswith("sys/") or len(text) > _MAX_PARAM:
        run.tags[path] = text
    else:
        run.params[path] = text


def _milliseconds(time: Any) -> int | None:
    if not isinstance(time, datetime):
        return None
    zoned = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return round(zoned.timestamp() * 1000)


def _write(database: Database, run: _Run, files: str) -> None:
    """Writes the collected content of a run. The run's own row is written last."""
    owner = {"run_uuid": run.key}
    name = str(run.system.get("sys/custom_run_id") or run.id)
    tags = run.tags | {ORIGINAL_ID_TAG: run.id, "mlflow.runName": name}
    if run.system.get("sys/owner"):
        tags["mlflow.user"] = str(run.system["sys/owner"])
    database.insert("tags", [owner | {"key": key, "value": value} for key, value in tags.items()])
    database.insert("params", [owner | {"key": key, "value": value} for key, value in run.params.items()])
    latest = [owner | {"key": key, "step": step, "timestamp": time, "value": value, "is_nan": is_nan} for key, (step, time, value, is_nan) in run.latest.items()]
    database.insert("latest_metrics", latest)
    start = _milliseconds(run.system.get("sys/creation_time"))
    start = start if start is not None else run.first
    running = run.system.get("sys/running_time")
    end = round(start + 1000 * running) if start is not None and isinstance(running, (int, float)) else run.last
    end = end if end is not None else _milliseconds(run.system.get("sys/modification_time"))
    is_deleted = run.system.get("sys/trashed") is True
    row = owner | {
        "name": name,
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "source_version": "",
        "user_id": str(run.system.get("sys/owner") or ""),
        "status": "FAILED" if run.system.get("sys/failed") is True else "FINISHED",
        "start_time": start,
        "end_time": end,
        "deleted_time": _milliseconds(run.system.get("sys/modification_time")) if is_deleted else None,
        "lifecycle_stage": "deleted" if is_deleted else "active",
        "artifact_uri": _artifact_uri(run, files),
        "experiment_id": experiment_number(f"neptune/{run.project}"),
    }
    database.insert("runs", [row])


def _artifact_uri(run: _Run, files: str) -> str:
    """Returns the directory that contains all exported files of a run."""
    if run.files:
        common = os.path.commonpath([os.path.dirname(file) for file in run.files])
        return f"{files}/{common}".rstrip("/")
    return f"{files}/{run.key}"


def _write_experiment(database: Database, project: str, files: str) -> None:
    """Writes the experiment of a project. Its times are the first start and the last end of its
    runs.
    """
    number = experiment_number(f"neptune/{project}")
    first, last = database.times_of_runs(number)
    database.replace(
        "experiments",
        [
            {
                "experiment_id": number,
                "name": project,
                "workspace": "default",
                "artifact_location": files,
                "lifecycle_stage": "active",
                "creation_time": first,
                "last_update_time": last,
            }
        ],
    )
    database.replace("experiment_tags", [{"experiment_id": number, "key": ORIGINAL_ID_TAG, "value": project}])
    database.commit()
