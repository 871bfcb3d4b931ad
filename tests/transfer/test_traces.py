"""Traces are imported with their spans, from every place where MLflow stores spans."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from tests.support.processes import child_environment
from tests.support.s3 import LocalS3
from tests.support.servers import ServerlessMlflow, binary
from tests.transfer import schemas
from tests.transfer.commands import contents, run
from tests.transfer.conftest import KINDS
from tests.transfer.schemas import SchemaTemplates
from tests.transfer.trace_rows import EXPERIMENT, IN_ARCHIVE, IN_FILE, IN_ROWS, LOST, LOST_SPANS, OLD, UNFINISHED, ZIPPED, traces

#: The releases in which the tables of traces changed.
_RELEASES = ["2.22.4", "3.0.1", "3.10.1", "3.13.0", "3.17.2", "3.18.0"]
_TABLES = ["trace_info", "trace_tags", "trace_request_metadata", "spans", "assessments", "entity_associations"]


def _import(database: str, data: Path) -> str:
    """Imports a database, in which the spans of some traces are lost."""
    done = subprocess.run([binary(), "import", "--from", database, "--data", data], capture_output=True, text=True, check=False)
    assert f"{len(LOST_SPANS)} entities were not imported, and 0 differ from the source" in done.stderr, done
    return done.stdout


def _exported(data: Path, file: Path) -> dict[str, list[tuple]]:
    run("export", "--to", file, "--data", data)
    return contents(file)


def _rows(file: str | Path, table: str) -> dict[tuple, dict[str, Any]]:
    """Returns the rows of a table of a SQLite database by their ids."""
    database = sqlite3.connect(str(file).removeprefix("sqlite:///"))
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]
    database.close()
    ids = {
        "trace_info": ["request_id"],
        "spans": ["trace_id", "span_id"],
        "assessments": ["assessment_id"],
        "entity_associations": ["source_id", "destination_id"],
    }
    return {tuple(row[column] for column in ids.get(table, ["request_id", "key"])): row for row in rows}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", _RELEASES)
def test_traces_of_a_schema_are_imported_as_if_it_was_upgraded(request: pytest.FixtureRequest, tmp_path: Path, kind: str, release: str) -> None:
    templates = request.getfixturevalue(kind)
    original = templates.create(release)
    (tmp_path / "files").mkdir()
    entities = traces(tmp_path / "files")
    schemas.fill(original, entities)
    copy = templates.copy(original)
    schemas.migrate(copy, "3.18.0" if release == "3.18.0" else schemas.INSTALLED)
    exported = []
    for name, database in (("original", original), ("copy", copy)):
        _import(database, tmp_path / name)
        exported.append(_exported(tmp_path / name, tmp_path / f"{name}.db"))
    for table in _TABLES:
        assert exported[0][table] == exported[1][table], table
    assert len(exported[0]["trace_info"]) == len(entities["trace_info"])


@pytest.fixture
def source(sqlite: SchemaTemplates, tmp_path: Path) -> str:
    """Returns a database of the installed release as its own server would have written it."""
    (tmp_path / "files").mkdir()
    older = sqlite.create("3.13.0")
    schemas.fill(older, traces(tmp_path / "files"))
    schemas.migrate(older, schemas.INSTALLED)
    return older


@pytest.fixture
def imported(source: str, tmp_path: Path) -> Path:
    """Returns the data directory with the import."""
    report = _import(source, tmp_path / "subject/data")
    assert LOST in report and UNFINISHED not in report
    return tmp_path / "subject/data"


@pytest.fixture
def server(imported: Path) -> Iterator[ServerlessMlflow]:
    server = ServerlessMlflow(imported.parent)
    yield server
    server.stop()


def test_an_export_has_the_rows_of_the_source(source: str, imported: Path, tmp_path: Path) -> None:
    run("export", "--to", tmp_path / "export.db", "--data", imported)
    drawn = {"association_id", "created_time", "db_payload_generation"}
    for table in _TABLES:
        expected, actual = _rows(source, table), _rows(tmp_path / "export.db", table)
        if table == "trace_info":
            # MLflow 2 had another name for the state.
            expected[(LOST,)]["status"] = "STATE_UNSPECIFIED"
        if table == "trace_tags":
            # Spans that were in files are now in the database.
            for trace in (IN_FILE, IN_ARCHIVE, ZIPPED, OLD):
                location = {"request_id": trace, "key": "mlflow.trace.spansLocation", "value": "TRACKING_STORE"}
                expected[trace, "mlflow.trace.spansLocation"] = location
            expected = {key: row for key, row in expected.items() if key[1] != "mlflow.traceName"}
        if table == "trace_request_metadata":
            columns = ("mlflow.trace.session", "mlflow.trace.tokenUsage", "mlflow.trace.cost")
            expected = {key: row for key, row in expected.items() if key[1] not in columns}
        if table == "assessments":
            expected[("a-2",)]["source_type"] = "LLM_JUDGE"
        if table == "spans":
            assert {trace for trace, _ in actual} == {IN_ROWS, IN_FILE, IN_ARCHIVE, ZIPPED, OLD}
            expected = {key: row for key, row in expected.items() if key[0] == IN_ROWS}
            actual = {key: row for key, row in actual.items() if key[0] == IN_ROWS}
            # The upgrade takes them from a column that these rows do not have.
            expected[IN_ROWS, f"{2:016x}"].update(model_name="gpt-4o", model_provider="openai")
        for row in [*expected.values(), *actual.values()]:
            for column in drawn:
                row.pop(column, None)
        assert actual == expected, table


def test_nothing_changes_when_an_export_is_imported_again(imported: Path, tmp_path: Path) -> None:
    exported = _exported(imported, tmp_path / "first.db")
    report = _import(f"sqlite:///{tmp_path}/first.db", imported)
    assert "traces: 0 imported, 0 updated, 7 unchanged" in report, report
    assert _exported(imported, tmp_path / "second.db") == exported
    _import(f"sqlite:///{tmp_path}/first.db", tmp_path / "other")
    assert _exported(tmp_path / "other", tmp_path / "third.db") == exported


def test_clients_see_traces_as_in_the_source(source: str, server: ServerlessMlflow) -> None:
    from mlflow.store.tracking.rest_store import RestStore
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from mlflow.utils.rest_utils import MlflowHostCreds

    # MLflow does not know this state of its second version any more.
    with sqlalchemy.create_engine(source).begin() as database:
        database.execute(sqlalchemy.text("UPDATE trace_info SET status = 'STATE_UNSPECIFIED' WHERE status = 'TRACE_STATUS_UNSPECIFIED'"))
    stores = SqlAlchemyStore(source, "unused"), RestStore(lambda: MlflowHostCreds(server.url))

    def info(store: Any, trace: str) -> dict:
        info = store.get_trace_info(trace).to_dict()
        info["assessments"] = sorted(info.get("assessments", []), key=lambda assessment: assessment["assessment_id"])
        for assessment in info["assessments"]:
            if "feedback" not in assessment:
                # MLflow's client drops the field.
                assessment.pop("valid", None)
        info.get("tags", {}).pop("mlflow.trace.spansLocation", None)
        info["trace_metadata"] = {key: value[:250] for key, value in info.get("trace_metadata", {}).items()}
        return info

    all_traces = [IN_ROWS, IN_FILE, IN_ARCHIVE, ZIPPED, LOST, UNFINISHED, OLD]
    for trace in all_traces:
        assert info(stores[1], trace) == info(stores[0], trace)
    filters = [
        "",
        "trace.status = 'ERROR'",
        "trace.client_request_id = 'request'",
        "metadata.`mlflow.trace.session` = 's'",
        "span.type = 'LLM'",
        "feedback.`assessment 2` = 'yes'",
        "tags.k = 'v'",
    ]
    for text in filters:
        found = [store.search_traces([str(EXPERIMENT)], filter_string=text)[0] for store in stores]
        assert [trace.trace_id for trace in found[1]] == [trace.trace_id for trace in found[0]], text
        assert found[1], text

    def spans(store: Any, trace: str) -> list[dict]:
        return [span.to_dict() for span in store.get_trace(trace, allow_partial=True).data.spans]

    for trace in (IN_ROWS, IN_ARCHIVE):
        expected, actual = spans(stores[0], trace), spans(stores[1], trace)
        for span in [*expected, *actual]:
            span["attributes"] = {key: json.loads(value) for key, value in span["attributes"].items()}
        assert actual == expected
    for trace, name in ((IN_FILE, "span 7"), (ZIPPED, "span 4"), (OLD, "old")):
        assert spans(stores[1], trace)[0]["name"].startswith(name)


def test_changes_of_the_source_are_taken_and_those_made_here_are_kept(source: str, imported: Path) -> None:
    import mlflow

    server = ServerlessMlflow(imported.parent)
    try:
        mlflow.MlflowClient(server.url).set_trace_tag(OLD, "here", "kept")
    finally:
        server.stop()
    with sqlalchemy.create_engine(source).begin() as database:
        for trace in (IN_ROWS, OLD):
            insert = sqlalchemy.text("INSERT INTO trace_tags (request_id, key, value) VALUES (:trace, 'new', 'tag')")
            database.execute(insert, {"trace": trace})
        database.execute(sqlalchemy.text("UPDATE trace_info SET timestamp_ms = timestamp_ms + 86400000 WHERE request_id = :trace"), {"trace": IN_ROWS})
        database.execute(sqlalchemy.text("DELETE FROM spans WHERE trace_id = :trace AND parent_span_id IS NOT NULL"), {"trace": IN_ROWS})
        database.execute(sqlalchemy.text("DELETE FROM assessments WHERE assessment_id = 'a-5'"))
    report = _import(source, imported)
    assert "traces: 0 imported, 1 updated, 5 unchanged" in report, report
    assert f"traces: 1 left alone, changed here since they were imported: {OLD}" in report, report
    exported = imported.parent / "changed.db"
    run("export", "--to", exported, "--data", imported)
    assert (IN_ROWS, "new") in _rows(exported, "trace_tags") and (OLD, "here") in _rows(exported, "trace_tags")
    assert (OLD, "new") not in _rows(exported, "trace_tags")
    assert ("a-5",) not in _rows(exported, "assessments")
    assert [key for key in _rows(exported, "spans") if key[0] == IN_ROWS] == [(IN_ROWS, f"{1:016x}")]
    expected = _rows(source, "trace_info")[(IN_ROWS,)]["timestamp_ms"]
    assert _rows(exported, "trace_info")[(IN_ROWS,)]["timestamp_ms"] == expected


def test_spans_that_are_found_later_are_imported(source: str, imported: Path, tmp_path: Path) -> None:
    directory = tmp_path / "files/traces" / LOST / "artifacts"
    directory.mkdir(parents=True)
    found = tmp_path / "files/moved/traces" / IN_FILE / "artifacts/traces.json"
    (directory / "traces.json").write_text(found.read_text())
    report = run("import", "--from", source, "--data", imported)
    assert "traces: 0 imported, 1 updated, 6 unchanged" in report, report


def test_what_cannot_be_held_is_reported_once(source: str, tmp_path: Path) -> None:
    tags = [{"trace": IN_FILE, "key": f"big {number}", "value": "x" * 8_000} for number in range(50)]
    with sqlalchemy.create_engine(source).begin() as database:
        database.execute(sqlalchemy.text("INSERT INTO trace_tags (request_id, key, value) VALUES (:trace, :key, :value)"), tags)
        database.execute(sqlalchemy.text("UPDATE assessments SET value = 'NaN' WHERE assessment_id = 'a-1'"))
        database.execute(sqlalchemy.text("UPDATE spans SET content = '{}' WHERE span_id = :span"), {"span": f"{2:016x}"})
        database.execute(sqlalchemy.text("UPDATE trace_info SET request_id = 'no#id' WHERE request_id = :trace"), {"trace": UNFINISHED})
    command = [binary(), "import", "--from", source, "--data", tmp_path / "data"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "5 entities were not imported, and 0 differ from the source" in done.stderr, done
    for line in [
        "assessments: 1 not imported, because their value is not a finite number: a-1",
        f"spans of traces: 1 not imported, because a span is not in MLflow's format: {IN_ROWS}",
        "traces: 1 not imported, because their id is not valid: no#id",
        f"traces: 1 not imported, because everything except their spans takes more than 327680 bytes: {IN_FILE}",
        "traces: 5 imported",
    ]:
        assert line in done.stdout, done.stdout


def test_spans_are_read_from_buckets(source: str, s3: LocalS3, tmp_path: Path) -> None:
    """The file of one trace is in a bucket, and that of another in the artifacts of the server, which
    are in the bucket as well.
    """
    bucket = s3.make_bucket("spans-of-traces")
    content = (tmp_path / "files/moved/traces" / IN_FILE / "artifacts/traces.json").read_bytes()
    locations = {LOST: f"s3://{bucket.name}/old é", IN_FILE: "mlflow-artifacts:/1"}
    for trace, prefix in ((LOST, "old é"), (IN_FILE, "served/1")):
        s3.client().put_object(Bucket=bucket.name, Key=f"{prefix}/traces/{trace}/artifacts/traces.json", Body=content)
    with sqlalchemy.create_engine(source).begin() as database:
        for trace, prefix in locations.items():
            tag = {"trace": trace, "location": f"{prefix}/traces/{trace}/artifacts"}
            database.execute(sqlalchemy.text("DELETE FROM trace_tags WHERE request_id = :trace AND key = 'mlflow.artifactLocation'"), tag)
            database.execute(sqlalchemy.text("INSERT INTO trace_tags (request_id, key, value) VALUES (:trace, 'mlflow.artifactLocation', :location)"), tag)
    command = [binary(), "import", "--from", source, "--data", tmp_path / "data", "--artifacts-destination", f"s3://{bucket.name}/served"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment(**s3.environment))
    assert "traces: 7 imported" in done.stdout and done.returncode == 0, done
    run("export", "--to", tmp_path / "export.db", "--data", tmp_path / "data")
    assert {IN_FILE, LOST} <= {trace for trace, _ in _rows(tmp_path / "export.db", "spans")}


def test_ids_that_are_taken_are_replaced_on_request(source: str, tmp_path: Path) -> None:
    import mlflow
    from mlflow.entities import TraceInfo, TraceLocation, TraceState
    from mlflow.store.tracking.rest_store import RestStore
    from mlflow.utils.rest_utils import MlflowHostCreds

    server = ServerlessMlflow(tmp_path / "taken")
    try:
        location = TraceLocation.from_experiment_id(mlflow.MlflowClient(server.url).create_experiment("other"))
        taken = TraceInfo(trace_id=IN_ROWS, trace_location=location, request_time=1, state=TraceState.OK)
        RestStore(lambda: MlflowHostCreds(server.url)).start_trace(taken)
    finally:
        server.stop()
    data = tmp_path / "taken/data"
    refused = run("import", "--from", source, "--data", data, fails=True)
    assert f"trace {IN_ROWS} cannot be imported: its id is taken" in refused
    run("import", "--from", source, "--data", data, "--remap", fails=True)
    run("export", "--to", tmp_path / "remapped.db", "--data", data)
    tags = _rows(tmp_path / "remapped.db", "trace_tags")
    (renamed,) = [trace for trace, key in tags if key == "mlflow-serverless.import.originalId"]
    spans = [row for (trace, _), row in _rows(tmp_path / "remapped.db", "spans").items() if trace == renamed]
    assert len(spans) == 2
    assert all(json.loads(json.loads(row["content"])["attributes"]["mlflow.traceRequestId"]) == renamed for row in spans)
