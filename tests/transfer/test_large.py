"""A database of the size of a small team's, whose import is killed twice and resumed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.transfer import schemas
from tests.transfer.commands import contents, run
from tests.support.servers import binary
from tests.transfer.rows import T
from tests.transfer.schemas import SchemaTemplates

_SPAN = '{"trace_id": "%s", "span_id": "%016x", "name": "s", "start_time_unix_nano": 1700000000000000000, "end_time_unix_nano": 1700000001000000000, "parent_span_id": null, "attributes": {"mlflow.traceRequestId": "\\"%s\\""}, "status": {"code": "STATUS_CODE_OK", "message": ""}, "events": []}'


def _fill(file: str, runs: int, points: int, traces: int, versions: int) -> None:
    """Inserts runs with points in all, traces with a span each, and versions of one model."""
    database = sqlite3.connect(file)
    ids = [f"{number:08x}{'0123456789ab'}4{'f' * 11}" for number in range(runs)]
    database.execute(
        "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage, creation_time, last_update_time)"
        " VALUES (1, 'large', 's3://old/1', 'active', ?, ?)",
        (T, T),
    )
    database.executemany(
        "INSERT INTO runs (run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, experiment_id)"
        " VALUES (?, ?, 'ann', 'FINISHED', ?, ?, 'active', ?, 1)",
        ((run_, f"run {number}", T + number, T + number + 9, f"s3://old/1/{run_}/artifacts") for number, run_ in enumerate(ids)),
    )
    for table in ("params", "tags"):
        entries = ((run_, f"k{key}", f"v{key * number % 7}") for number, run_ in enumerate(ids) for key in range(4))
        database.executemany(f"INSERT INTO {table} (run_uuid, key, value) VALUES (?, ?, ?)", entries)
    each = points // runs // 5
    rows = ((run_, f"m{key}", step / 7, T + step, step) for run_ in ids for key in range(5) for step in range(each))
    database.executemany("INSERT INTO metrics (run_uuid, key, value, timestamp, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)", rows)
    database.execute(
        "INSERT INTO latest_metrics (run_uuid, key, value, timestamp, step, is_nan)"
        " SELECT run_uuid, key, value, timestamp, step, 0 FROM metrics WHERE step = ?",
        (each - 1,),
    )
    for number in range(traces):
        trace = f"tr-{number:032x}"
        database.execute("INSERT INTO trace_info (request_id, experiment_id, timestamp_ms, execution_time_ms, status) VALUES (?, 1, ?, 5, 'OK')", (trace, T + number))
        database.execute("INSERT INTO trace_tags (request_id, key, value) VALUES (?, 'mlflow.trace.spansLocation', 'TRACKING_STORE')", (trace,))
        database.execute(
            "INSERT INTO spans (trace_id, experiment_id, span_id, name, status, start_time_unix_nano, end_time_unix_nano, content)"
            " VALUES (?, 1, ?, 's', 'OK', 1700000000000000000, 1700000001000000000, ?)",
            (trace, f"{number + 1:016x}", _SPAN % (trace, number + 1, trace)),
        )
    database.execute("INSERT INTO registered_models (name, creation_time, last_updated_time, workspace) VALUES ('m', ?, ?, 'default')", (T, T))
    database.executemany(
        "INSERT INTO model_versions (name, version, creation_time, last_updated_time, current_stage, source, status, workspace)"
        " VALUES ('m', ?, ?, ?, 'None', 's3://old/m', 'READY', 'default')",
        ((number + 1, T, T) for number in range(versions)),
    )
    database.commit()
    database.close()


def _import(source: str, data: Path, kill_after: float | None = None) -> tuple[float, float]:
    """Imports, and returns the seconds and the greatest use of memory in MB. Kills the process after
    some seconds, if requested.
    """
    started = time.monotonic()
    process = subprocess.Popen([binary(), "import", "--from", source, "--data", data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process.pid, signal.SIGKILL)
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    assert (status == 0) == (kill_after is None), output
    return time.monotonic() - started, usage.ru_maxrss / 1024


@pytest.mark.slow
def test_an_import_that_is_killed_twice_is_complete_after_the_third(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    file = source.removeprefix("sqlite:///")
    _fill(file, runs=10_000, points=1_000_000, traces=1_000, versions=200)
    whole, memory = _import(source, tmp_path / "whole")
    for kill_after in (whole / 4, whole / 3):
        _import(source, tmp_path / "data", kill_after)
    resumed, _ = _import(source, tmp_path / "data")
    print(f"{whole:.0f} s, {memory:.0f} MB; resumed in {resumed:.0f} s", file=sys.stderr)
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    before, after = contents(Path(file)), contents(tmp_path / "export.db")
    for table in ("runs", "params", "tags", "metrics", "latest_metrics", "trace_info", "spans", "model_versions"):
        assert len(before[table]) == len(after[table]), table
    assert before["metrics"] == after["metrics"]
    assert whole < 180


@pytest.mark.slow
def test_memory_does_not_grow_with_the_size(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    used = []
    for size in (1, 10):
        source = sqlite.create(schemas.INSTALLED)
        _fill(source.removeprefix("sqlite:///"), runs=1_000 * size, points=100_000 * size, traces=1_000 * size, versions=100 * size)
        used.append(_import(source, tmp_path / f"data{size}")[1])
    assert used[1] < 1.5 * used[0] + 20, used
