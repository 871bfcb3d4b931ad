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


def test_a_dry_run_writes_nothing(source: str, tmp_path: Path) -> None:
    report = run("import", "--from", source, "--data", tmp_path / "data", "--dry-run")
    assert "runs: 7 to import" in report and "Nothing has been written" in report, report
    assert "runs: 7 imported" in run("import", "--from", source, "--data", tmp_path / "data")
