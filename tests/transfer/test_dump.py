"""Dumps contain the rows that the source has, and can be imported."""

import datetime
import decimal
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pyarrow
import pytest
from mlflow.entities import LoggedModelOutput, Metric
from pyarrow import parquet

from tests.support.servers import StockMlflow, stock_database
from tests.transfer import rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.schemas import SchemaTemplates

_SOURCES = Path(__file__).parents[2] / "clients/python/src"
#: Tables whose rows are equal in the source and in the dump.
_EQUAL = (
    "experiments",
    "experiment_tags",
    "params",
    "tags",
    "metrics",
    "latest_metrics",
    "logged_models",
    "logged_model_params",
    "logged_model_tags",
    "registered_models",
    "registered_model_tags",
    "registered_model_aliases",
    "trace_tags",
    "trace_request_metadata",
    "assessments",
)


def _dump(*arguments: str | Path, code: int = 0) -> str:
    """Runs the command, checks its exit code, and returns what it printed."""
    environment = os.environ | {"PYTHONPATH": str(_SOURCES)}
    command = [sys.executable, "-m", "mlflow_serverless_dump", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def _select(file: Path, query: str) -> list[tuple]:
    with sqlite3.connect(file) as database:
        return sorted(database.execute(query).fetchall(), key=repr)


def _add_models(client: mlflow.MlflowClient) -> None:
    """Logs models and registers a model and a prompt."""
    for name in ("first", rows.UNICODE.split()[1]):
        model = client.create_logged_model("1", name, source_run_id=rows.UNFINISHED, tags={"a": name}, params={"p": ""}, model_type="agent")
    client.log_batch(rows.UNFINISHED, metrics=[Metric("accuracy", 0.5, rows.T, 3, model_id=model.model_id, run_id=rows.UNFINISHED)])
    client.log_outputs(rows.UNFINISHED, [LoggedModelOutput(model.model_id, 3)])
    client.finalize_logged_model(model.model_id, "READY")
    client.create_registered_model("it's", tags={"t": rows.UNICODE}, description="about")
    for _ in range(3):
        client.create_model_version("it's", "s3://bucket/model", run_id=rows.FINISHED, tags={"v": "1"}, description="")
    client.transition_model_version_stage("it's", "2", "Staging")
    client.set_registered_model_alias("it's", "champion", "3")
    client.delete_model_version("it's", "1")
    client.register_prompt("greeting", "Hello {{name}}", tags={"kind": "x"})
    client.register_prompt("greeting", f"{rows.UNICODE} {{{{name}}}}")
    client.set_prompt_alias("greeting", "best", 2)


def _add_traces(client: mlflow.MlflowClient) -> None:
    """Creates traces with nested spans and assessments, one of them linked to a run."""
    from mlflow.entities import AssessmentSource
    from mlflow.tracing.provider import reset

    reset()
    last = ""
    for number in range(3):
        root = client.start_trace(f"trace {number}", inputs={"q": rows.UNICODE}, tags={"n": str(number)}, experiment_id="1")
        span = client.start_span("inner", root.trace_id, root.span_id, span_type="LLM", inputs={"x": float("inf")}, attributes={"mlflow.llm.model": "m"})
        client.end_span(root.trace_id, span.span_id, outputs=[1, None, "ü"])
        client.end_trace(root.trace_id, outputs="done", status="ERROR" if number else "OK")
        last = root.trace_id
    mlflow.flush_trace_async_logging()
    source = AssessmentSource("HUMAN", "ann")
    mlflow.log_feedback(trace_id=last, name="good", value=True, source=source, rationale="why", metadata={"a": "b"})
    mlflow.log_expectation(trace_id=last, name="wanted", value={"x": [1.5]}, source=source)
    client.link_traces_to_run([last], rows.FINISHED)


@pytest.fixture(scope="module")
def source(sqlite: SchemaTemplates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yields the URL and the database of a stock server with entities of every kind."""
    directory = tmp_path_factory.mktemp("source")
    database = sqlite.create(schemas.INSTALLED)
    schemas.fill(database, rows.tracking(with_long_ids=True))
    stock_database(directory).write_bytes(Path(database.removeprefix("sqlite:///")).read_bytes())
    # Artifact locations name a bucket. Without this, clients wait for credentials of a machine in AWS.
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        # Other tests of this process may have chosen an experiment of another server.
        for variable in ("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID"):
            environment.delenv(variable, raising=False)
        server = StockMlflow(directory)
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(server.url)
        client = mlflow.MlflowClient(server.url)
        _add_models(client)
        _add_traces(client)
        yield server.url, stock_database(directory)
        mlflow.set_tracking_uri(before)
        server.stop()


@pytest.fixture(scope="module")
def dump(source: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dump of everything that the source has."""
    file = tmp_path_factory.mktemp("dump") / "dump.db"
    report = _dump("tracking", "--from", source[0], "--to", file)
    assert "time at which a run was deleted" in report
    return file


def test_rows_equal_those_of_the_source(source: tuple[str, Path], dump: Path) -> None:
    database, file = source[1], dump
    expected, dumped = contents(database), contents(file)
    for table in _EQUAL:
        assert dumped[table] == expected[table], table
        assert dumped[table], table
    columns = "run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, experiment_id"
    queries = (
        f"SELECT {columns} FROM runs",
        # What remains of deleted versions is not returned by the API, and neither is the difference
        # between an empty text and none.
        "SELECT name, version, creation_time, last_updated_time, coalesce(description, ''), coalesce(user_id, ''), current_stage, source, storage_location,"
        " coalesce(run_id, ''), coalesce(run_link, ''), status, coalesce(status_message, '') FROM model_versions WHERE current_stage != 'Deleted_Internal'",
        "SELECT t.* FROM model_version_tags t JOIN model_versions USING (workspace, name, version) WHERE current_stage != 'Deleted_Internal'",
        # Without the number of times that spans were written.
        "SELECT request_id, experiment_id, timestamp_ms, execution_time_ms, status, client_request_id, request_preview, response_preview, trace_name FROM trace_info",
        "SELECT request_id, session_id, total_tokens, total_cost FROM trace_info",
        "SELECT experiment_id, name, digest, dataset_source_type, dataset_source, dataset_schema, dataset_profile FROM datasets",
        "SELECT d.name, i.destination_id, t.name, t.value FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id LEFT JOIN input_tags t USING (input_uuid)",
        "SELECT source_type, source_id, destination_id, step FROM inputs WHERE source_type != 'DATASET'",
        "SELECT model_id, metric_name, metric_timestamp_ms, metric_step, metric_value, run_id FROM logged_model_metrics",
        "SELECT source_type, source_id, destination_type, destination_id FROM entity_associations",
        "SELECT trace_id, span_id, parent_span_id, name, type, status, start_time_unix_nano, end_time_unix_nano, model_name, total_cost FROM spans",
    )
    sides = {query: (_select(file, query), _select(database, query)) for query in queries}
    assert {query: side for query, side in sides.items() if side[0] != side[1] or not side[0]} == {}
    spans = "SELECT span_id, content FROM spans"
    read = [[(id_, json.loads(content)) for id_, content in _select(side, spans)] for side in (file, database)]
    assert read[0] == read[1]


def test_a_dump_is_continued(source: tuple[str, Path], dump: Path, tmp_path: Path) -> None:
    url, _ = source
    file = tmp_path / "dump.db"
    shutil.copyfile(dump, file)
    before = contents(file)
    with sqlite3.connect(file) as database:
        # As if the process had been killed in the middle of one run.
        database.execute("DELETE FROM mlflow_serverless_dump WHERE kind = 'run' AND id = ?", (rows.LONG,))
        database.execute("DELETE FROM runs WHERE run_uuid = ?", (rows.LONG,))
        database.execute("DELETE FROM metrics WHERE run_uuid = ? AND step > 100", (rows.LONG,))
    second = _dump("tracking", "--from", url, "--to", file, "--parallel", "2")
    # Runs that have not ended are always read.
    assert "runs: 3 written, 4 already complete" in second
    assert "traces: 0 written, 3 already complete" in second
    assert contents(file) == before
    assert "choose another file" in _dump("tracking", "--from", f"{url}/", "--to", file, code=2)


def test_what_cannot_be_read_is_a_failure_and_read_again(
    source: tuple[str, Path], dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(_SOURCES)
    from mlflow_serverless_dump.command import main

    file = tmp_path / "dump.db"
    shutil.copyfile(dump, file)
    with sqlite3.connect(file) as database:
        database.execute("DELETE FROM mlflow_serverless_dump WHERE kind = 'run'")
    command = ["tracking", "--from", source[0], "--to", str(file), "--skip", "registry", "--skip", "traces"]
    read = mlflow.MlflowClient.get_metric_history

    def fail_sometimes(client: mlflow.MlflowClient, run_id: str, key: str) -> list[Metric]:
        if run_id == rows.LONG and key == "backwards":
            raise OSError("connection reset")
        return read(client, run_id, key)

    with monkeypatch.context() as broken:
        broken.setattr(mlflow.MlflowClient, "get_metric_history", fail_sometimes)
        assert main(command) == 1
    printed = capsys.readouterr().out
    assert f"failed: run {rows.LONG}: connection reset" in printed and "runs: 6 written" in printed
    assert main(command) == 0
    before, after = contents(dump), contents(file)
    assert after == before


def test_ids_that_the_schema_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_SOURCES)
    from mlflow_serverless_dump import ids

    azure = "6a8b3e51-4c8e-4f0e-9c3f-0f3d1c1f2b7a"
    assert 10**17 <= ids.experiment_number(azure) < 10**18
    assert ids.experiment_number(azure) == ids.experiment_number(azure) != ids.experiment_number(azure[::-1])
    assert ids.experiment_number("0") == 0 and ids.experiment_number(str(rows.LONG_EXPERIMENT)) == rows.LONG_EXPERIMENT
    assert ids.run_id(rows.LONG) == rows.LONG and len(ids.run_id("olive_sail_1")) == 32
    assert ids.optional_run_id("") is None


def test_a_dump_is_imported(dump: Path, tmp_path: Path) -> None:
    run("import", "--from", f"sqlite:///{dump}", "--data", tmp_path / "data")
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    exported, dumped = contents(tmp_path / "export.db"), contents(dump)
    for table in ("experiments", "experiment_tags", "metrics", "latest_metrics", "params", "tags"):
        assert exported[table] == dumped[table], table


def test_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert "cannot read experiments" in _dump("tracking", "--from", "http://127.0.0.1:1", "--to", tmp_path / "x.db", code=2)
    assert not (tmp_path / "x.db").exists()
    assert "is not a directory" in _dump("neptune", "--from", tmp_path / "none", "--to", tmp_path / "x.db", code=2)
    (tmp_path / "empty").mkdir()
    assert "contains no Parquet files" in _dump("neptune", "--from", tmp_path / "empty", "--to", tmp_path / "x.db", code=2)
    _export(tmp_path / "export", [_row("float", "lr", float_value=0.1)])
    (tmp_path / "other.db").write_bytes(b"no database at all" * 100)
    assert "not a database" in _dump("neptune", "--from", tmp_path / "export", "--to", tmp_path / "other.db", code=2)


#: The columns of neptune-exporter's files.
_SCHEMA = pyarrow.schema(
    {
        **dict.fromkeys(("project_id", "run_id", "attribute_path", "attribute_type"), pyarrow.string()),
        "step": pyarrow.decimal128(18, 6),
        "timestamp": pyarrow.timestamp("ms", tz="UTC"),
        "int_value": pyarrow.int64(),
        "float_value": pyarrow.float64(),
        "string_value": pyarrow.string(),
        "bool_value": pyarrow.bool_(),
        "datetime_value": pyarrow.timestamp("ms", tz="UTC"),
        "string_set_value": pyarrow.list_(pyarrow.string()),
        "file_value": pyarrow.struct({"path": pyarrow.string()}),
        "histogram_value": pyarrow.struct({"type": pyarrow.string(), "edges": pyarrow.list_(pyarrow.float64()), "values": pyarrow.list_(pyarrow.float64())}),
    }
)


def _time(milliseconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)


def _row(kind: str, path: str, run_id: str = "RUN-1", project: str = "team/vision", **values: object) -> dict:
    return {"project_id": project, "run_id": run_id, "attribute_path": path, "attribute_type": kind, **values}


def _export(directory: Path, values: list[dict], name: str = "part_0") -> None:
    directory.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(values, _SCHEMA), directory / f"{name}.parquet")


def _neptune_rows() -> list[dict]:
    points = [0.5, float("nan"), float("inf"), 0.25]
    return [
        _row("datetime", "sys/creation_time", datetime_value=_time(rows.T)),
        _row("float", "sys/running_time", float_value=12.5),
        _row("string", "sys/owner", string_value="ann"),
        _row("bool", "sys/failed", bool_value=True),
        _row("string_set", "sys/tags", string_set_value=["b", "a"]),
        _row("float", "config/lr", float_value=0.1),
        _row("int", "config/epochs", int_value=4),
        _row("bool", "config/flag", bool_value=False),
        _row("string", "config/name", string_value=rows.UNICODE),
        _row("string", "config/long", string_value="x" * 7000),
        *(
            _row("float_series", "train/loss", step=decimal.Decimal(step), timestamp=_time(rows.T + 10 * step), float_value=value)
            for step, value in enumerate(points)
        ),
        _row("string_series", "log", step=decimal.Decimal(1), timestamp=_time(rows.T), string_value="line"),
        _row("histogram_series", "weights", step=decimal.Decimal(1), timestamp=_time(rows.T), histogram_value={"type": "COUNTING", "edges": [0.0, 1.0], "values": [3.0]}),
        _row("file", "model", file_value={"path": "team_vision/RUN-1/model.bin"}),
        _row("file_series", "images", step=decimal.Decimal("2"), file_value={"path": "team_vision/RUN-1/images/2.png"}),
        _row("bool", "sys/trashed", "RUN-2", bool_value=True),
        _row("float_series", "train/loss", "RUN-2", step=decimal.Decimal("0.5"), timestamp=_time(rows.T + 99), float_value=1.0),
        _row("int", "config/epochs", "RUN-1", "team/text", int_value=9),
        _row("datetime", "sys/creation_time", "RUN-1", "team/text", datetime_value=_time(rows.T)),
    ]


def test_neptune(tmp_path: Path) -> None:
    _export(tmp_path / "data", _neptune_rows()[:12], "part_0")
    _export(tmp_path / "data", _neptune_rows()[12:], "part_1")
    file = tmp_path / "dump.db"
    command = ("neptune", "--from", tmp_path / "data", "--to", file, "--files", "s3://bucket/files")
    report = _dump(*command)
    assert "runs: 3 written" in report and "steps with a fraction" in report and "histogram" in report
    assert [name for (name,) in _select(file, "SELECT name FROM experiments")] == ["team/text", "team/vision"]
    assert _select(file, "SELECT creation_time, last_update_time FROM experiments WHERE name = 'team/vision'") == [(rows.T, rows.T + 12_500)]
    columns = "name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri"
    found = _select(file, f"SELECT {columns} FROM runs WHERE user_id = 'ann'")
    assert found == [("RUN-1", "ann", "FAILED", rows.T, rows.T + 12_500, "active", "s3://bucket/files/team_vision/RUN-1")]
    assert _select(file, "SELECT start_time, lifecycle_stage FROM runs WHERE name = 'RUN-2'") == [(rows.T + 99, "deleted")]
    of_run = "WHERE run_uuid = (SELECT run_uuid FROM runs WHERE user_id = 'ann')"
    params = dict(_select(file, f"SELECT key, value FROM params {of_run}"))
    assert params == {"config/lr": "0.1", "config/epochs": "4", "config/flag": "False", "config/name": rows.UNICODE}
    tags = dict(_select(file, f"SELECT key, value FROM tags {of_run}"))
    assert tags["config/long"] == "x" * 7000 and tags["sys/tags"] == '["a", "b"]' and tags["log"] == "line"
    assert tags["neptune.file/images/2"] == "team_vision/RUN-1/images/2.png"
    largest = 1.7976931348623157e308
    expected = [(0, rows.T, 0.5, 0), (1, rows.T + 10, 0.0, 1), (2, rows.T + 20, largest, 0), (3, rows.T + 30, 0.25, 0)]
    assert _select(file, f"SELECT step, timestamp, value, is_nan FROM metrics {of_run}") == expected
    assert _select(file, f"SELECT step, timestamp, value, is_nan FROM latest_metrics {of_run}") == expected[3:]
    before = contents(file)
    assert "runs: 0 written, 3 already complete" in _dump(*command)
    assert contents(file) == before
    run("import", "--from", f"sqlite:///{file}", "--data", tmp_path / "imported")
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "imported")
    exported = contents(tmp_path / "export.db")
    for table in ("experiments", "metrics", "latest_metrics", "params", "tags", "runs"):
        assert exported[table] == before[table], table


def test_an_unreadable_file_is_a_failure(tmp_path: Path) -> None:
    _export(tmp_path / "data", _neptune_rows())
    (tmp_path / "data" / "broken.parquet").write_bytes(b"PAR1")
    report = _dump("neptune", "--from", tmp_path / "data", "--to", tmp_path / "dump.db", code=1)
    assert "broken.parquet" in report and "runs: 3 written" in report
