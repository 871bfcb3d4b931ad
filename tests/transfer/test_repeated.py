"""Importing again brings what is new, and leaves alone what was changed here."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest

from tests.support.servers import ServerlessMlflow
from tests.transfer import rows, schemas
from tests.transfer.commands import contents, run
from tests.transfer.schemas import SchemaTemplates


@pytest.fixture
def source(sqlite: SchemaTemplates) -> Iterator[str]:
    database = sqlite.create(schemas.INSTALLED)
    schemas.fill(database, rows.everything(with_long_ids=True))
    yield database


def _execute(source: str, *statements: str) -> None:
    with sqlite3.connect(source.removeprefix("sqlite:///")) as database:
        for statement in statements:
            database.execute(statement)


def test_what_is_new_in_the_source_follows(source: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("import", "--from", source, "--data", data)
    assert " imported" not in run("import", "--from", source, "--data", data).replace(" 0 imported", "")
    _execute(
        source,
        f"UPDATE runs SET name = 'renamed', status = 'FAILED' WHERE run_uuid = '{rows.FINISHED}'",
        f"DELETE FROM tags WHERE run_uuid = '{rows.FINISHED}' AND key = 'big'",
        f"INSERT INTO metrics (run_uuid, key, value, timestamp, step, is_nan) VALUES ('{rows.LONG}', 'long', 9.5, {rows.T + 99_999}, 99999, 0)",
        f"UPDATE latest_metrics SET value = 9.5, timestamp = {rows.T + 99_999}, step = 99999 WHERE run_uuid = '{rows.LONG}' AND key = 'long'",
        "UPDATE experiments SET name = 'another name', lifecycle_stage = 'deleted' WHERE experiment_id = 1",
        "UPDATE model_versions SET current_stage = 'Staging' WHERE name = 'churn' AND version = 4",
        f"UPDATE logged_models SET status = 3 WHERE model_id = '{rows.LOGGED_MODELS[0]}'",
    )
    report = run("import", "--from", source, "--data", data)
    assert "runs: 0 imported, 4 updated" in report, report
    assert "left alone" not in report and "differ" not in report, report
    run("export", "--to", tmp_path / "export.db", "--data", data)
    before, after = contents(Path(source.removeprefix("sqlite:///"))), contents(tmp_path / "export.db")
    for table in ("experiments", "experiment_tags", "params", "tags", "metrics", "latest_metrics"):
        assert before[table] == after[table], table


def test_what_was_changed_here_is_left_alone_and_listed(source: str, tmp_path: Path) -> None:
    data = tmp_path / "subject/data"
    run("import", "--from", source, "--data", data)
    server = ServerlessMlflow(tmp_path / "subject")
    client = mlflow.MlflowClient(server.url)
    client.set_tag(rows.FINISHED, "added", "here")
    client.log_metric(rows.UNFINISHED, "loss", 9.0, step=9)
    server.stop()
    _execute(
        source,
        f"UPDATE runs SET name = 'renamed' WHERE run_uuid IN ('{rows.FINISHED}', '{rows.UNFINISHED}')",
    )
    report = run("import", "--from", source, "--data", data)
    assert "runs: 2 left alone, changed here since they were imported" in report, report
    server = ServerlessMlflow(tmp_path / "subject")
    client = mlflow.MlflowClient(server.url)
    assert client.get_run(rows.FINISHED).data.tags["added"] == "here"
    assert client.get_run(rows.FINISHED).info.run_name == f"run {rows.FINISHED[:8]}"
    server.stop()


def test_an_id_that_is_taken_is_an_error_unless_it_may_be_replaced(source: str, tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path / "subject")
    taken = mlflow.MlflowClient(server.url).create_experiment(rows.UNICODE)
    server.stop()
    data = tmp_path / "subject/data"
    message = run("import", "--from", source, "--data", data, fails=True)
    assert "--remap" in message and taken == "1"
    run("import", "--from", source, "--data", data, "--remap")
    server = ServerlessMlflow(tmp_path / "subject")
    client = mlflow.MlflowClient(server.url)
    assert client.get_experiment("1").tags == {}
    copy = client.get_experiment_by_name(f"{rows.UNICODE} (1)")
    assert client.get_run(rows.FINISHED).info.experiment_id == copy.experiment_id
    server.stop()


def test_runs_refer_to_the_new_ids_of_logged_models(source: str, tmp_path: Path) -> None:
    model, other = rows.LOGGED_MODELS[0], rows.LOGGED_MODELS[2]
    _execute(
        source,
        "INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id, step)"
        f" VALUES ('{'4' * 32}', 'RUN_INPUT', '{rows.EMPTY}', 'MODEL_INPUT', '{model}', 0)",
        "INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id, step)"
        f" VALUES ('{'5' * 32}', 'RUN_OUTPUT', '{rows.FINISHED}', 'MODEL_OUTPUT', '{other}', 3)",
    )
    data, export, marker = tmp_path / "data", tmp_path / "export.db", "mlflow-serverless.import.originalId"
    run("import", "--from", source, "--data", data)
    run("export", "--to", export, "--data", data)
    # Ids that contain another experiment: they cannot be kept.
    digits = f"{rows.T:012x}{99:015x}"
    foreign = {model: f"m-{digits}00001", rows.FINISHED: f"{digits}00002"}
    columns = {"runs": ["run_uuid"], "inputs": ["source_id", "destination_id"], "logged_models": ["model_id", "source_run_id"]}
    columns |= {table: ["run_uuid"] for table in ("tags", "params", "metrics", "latest_metrics")}
    columns |= {f"logged_model_{part}": ["model_id"] for part in ("tags", "params")} | {"logged_model_metrics": ["model_id", "run_id"]}
    _execute(
        source,
        *(f"UPDATE {table} SET {column} = '{new}' WHERE {column} = '{old}'" for old, new in foreign.items() for table in columns for column in columns[table]),
    )
    message = run("import", "--from", source, "--data", tmp_path / "other", fails=True)
    assert "entities were not imported" in message, message
    for _ in range(2):
        report = run("import", "--from", source, "--data", tmp_path / "remapped", "--remap")
        assert "differ" not in report and "not imported" not in report and "left alone" not in report.replace("exist here already", ""), report
    run("export", "--to", tmp_path / "remapped.db", "--data", tmp_path / "remapped")
    with sqlite3.connect(tmp_path / "remapped.db") as database:
        [(new_model,)] = database.execute("SELECT model_id FROM logged_model_tags WHERE tag_key = ? AND tag_value = ?", (marker, foreign[model])).fetchall()
        [(new_run,)] = database.execute("SELECT run_uuid FROM tags WHERE key = ? AND value = ?", (marker, foreign[rows.FINISHED])).fetchall()
        links = database.execute("SELECT source_type, source_id, destination_id FROM inputs WHERE source_type LIKE 'RUN%' ORDER BY source_type").fetchall()
        sources = dict(database.execute("SELECT model_id, source_run_id FROM logged_models").fetchall())
    assert links == [("RUN_INPUT", rows.EMPTY, new_model), ("RUN_OUTPUT", new_run, other)]
    assert sources[new_model] == new_run and new_model != model


def test_a_dry_run_says_what_the_retention_would_remove(source: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    report = run("import", "--from", source, "--data", data, "--dry-run", "--write-units", "10")
    assert "retention" not in report and "with 10 write units per second" in report, report
    for setting in ("deleted-retention", "metric-retention", "trace-retention"):
        run("config", "set", setting, "30d", "--yes", "--data", data)
    _execute(
        source,
        f"INSERT INTO trace_info (request_id, experiment_id, timestamp_ms, execution_time_ms, status) VALUES ('tr-{'6' * 32}', 1, {rows.T}, 5, 'OK')",
        f"INSERT INTO trace_tags (request_id, key, value) VALUES ('tr-{'6' * 32}', 'mlflow.trace.spansLocation', 'TRACKING_STORE')",
    )
    report = run("import", "--from", source, "--data", data, "--dry-run")
    assert f"runs: 2 were deleted longer ago than the retention of deleted entities allows, and would be removed: {rows.DELETED}" in report, report
    assert "runs: 5 ended longer ago than the retention of metrics allows, and would lose their histories" in report, report
    assert f"traces: 1 are older than their retention, and would be hidden and removed: tr-{'6' * 32}" in report, report
    # The tag of an experiment overrides the setting.
    _execute(source, "INSERT INTO experiment_tags (experiment_id, key, value) VALUES (1, 'mlflow.trace.retention', 'off')")
    assert "traces: 1 are older" not in run("import", "--from", source, "--data", data, "--dry-run")
    run("import", "--from", source, "--data", data)
    server = ServerlessMlflow(tmp_path)
    found = mlflow.MlflowClient(server.url).search_traces(locations=["1"], include_spans=False)
    assert [trace.info.trace_id for trace in found] == [f"tr-{'6' * 32}"]
    server.stop()


def test_a_dry_run_writes_nothing(source: str, tmp_path: Path) -> None:
    report = run("import", "--from", source, "--data", tmp_path / "data", "--dry-run")
    assert "runs: 7 to import" in report and "Nothing has been written" in report, report
    assert "runs: 7 imported" in run("import", "--from", source, "--data", tmp_path / "data")
