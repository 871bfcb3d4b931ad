"""Tests the import and export of label schemas, review queues, issues and MCP servers."""

import sqlite3
from pathlib import Path

import pytest
import requests

from tests.support.servers import ServerlessMlflow
from tests.transfer import reviews, schemas
from tests.transfer.commands import contents, run
from tests.transfer.conftest import KINDS
from tests.transfer.schemas import SchemaTemplates

_COUNTS = {"label schemas": 4, "review queues": 2, "issues": 3, "MCP servers": 2}


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _import(source: str | Path, data: Path, *options: str, fails: bool = False) -> str:
    source = source if isinstance(source, str) else f"sqlite:///{source}"
    return run("import", "--from", source, "--data", data, *options, fails=fails)


def _has_counts(report: str, form: str) -> None:
    for kind, count in _COUNTS.items():
        assert f"{kind}: {form.format(count)}" in report, report


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_same_after_import_and_export(request: pytest.FixtureRequest, sqlite: SchemaTemplates, tmp_path: Path, kind: str) -> None:
    templates: SchemaTemplates = request.getfixturevalue(kind)
    source = templates.create(schemas.INSTALLED)
    reviews.fill(source, tmp_path / "artifacts")
    data = tmp_path / "data"
    _has_counts(_import(source, data), "{} imported")
    _has_counts(_import(source, data), "0 imported, 0 updated, {} unchanged")
    run("export", "--to", tmp_path / "export.db", "--data", data)
    if kind == "sqlite":
        expected, found = reviews.rows(_path(source)), reviews.rows(tmp_path / "export.db")
        for table, rows in expected.items():
            assert found[table] == rows and rows, table
    _import(tmp_path / "export.db", tmp_path / "other")
    run("export", "--to", tmp_path / "second.db", "--data", tmp_path / "other")
    assert contents(tmp_path / "second.db") == contents(tmp_path / "export.db")


def test_the_newest_schema_is_imported_as_that_before_it(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    ids = reviews.fill(source, tmp_path / "artifacts")
    newest = sqlite.copy(source)
    schemas.migrate(newest, "3.18.0")
    with sqlite3.connect(_path(newest)) as database:
        database.execute(
            "UPDATE issues SET metadata = '{\"k\": \"v\"}', last_seen_timestamp = 5, last_updated_by = 'eve' WHERE issue_id = ?", (ids["issue"],)
        )
    database.close()
    _has_counts(_import(newest, tmp_path / "newest/data"), "{} imported")
    run("export", "--to", tmp_path / "newest.db", "--data", tmp_path / "newest/data")
    expected, found = reviews.rows(_path(source)), reviews.rows(tmp_path / "newest.db")
    for table, rows in expected.items():
        assert found[table] == rows, table

    server = ServerlessMlflow(tmp_path / "newest")
    api = f"{server.url}/api/3.0/mlflow"
    issue = requests.get(f"{api}/issues/{ids['issue']}", timeout=60).json()["issue"]
    assert issue["metadata"] == {"k": "v"} and issue["last_seen_timestamp"] == 5 and issue["last_updated_by"] == "eve"
    searched = {"experiment_id": ids["experiment"], "include_trace_count": True}
    counted = requests.post(f"{api}/issues/search", json=searched, timeout=60).json()["issues"]
    found = requests.get(f"{api}/review-queues/list", params={"experiment_id": ids["experiment"]}, timeout=60).json()["review_queues"]
    (queue,) = (queue for queue in found if queue["queue_type"] == "CUSTOM")
    items = requests.get(f"{api}/review-queues/items/list", params={"queue_id": queue["queue_id"]}, timeout=60).json()["items"]
    listed = requests.get(f"{api}/label-schemas/list", params={"experiment_id": ids["experiment"]}, timeout=60).json()["label_schemas"]
    latest = requests.get(f"{api}/mcp-servers/io.example%2Fweather", timeout=60).json()
    # The queues that contain a trace are found by a row of the trace.
    of_trace = {"experiment_id": ids["experiment"], "item_id": items[0]["item_id"]}
    queues = requests.get(f"{api}/review-queues/list", params=of_trace, timeout=60).json()["review_queues"]
    server.stop()
    assert {issue["name"]: issue["trace_count"] for issue in counted} == {"slow": 2, "large": 0}
    assert [queue["name"] for queue in queues] == [queue["name"]]
    assert {item["status"] for item in items} == {"PENDING", "COMPLETE"}
    assert {schema["schema_id"] for schema in listed} >= set(queue["schema_ids"]) and len(listed) == 5
    assert latest["latest_version"] == "2.0.0-rc.1", latest


def test_changes_of_the_source_are_followed_unless_there_are_changes_here(sqlite: SchemaTemplates, tmp_path: Path) -> None:
    source = sqlite.create(schemas.INSTALLED)
    ids = reviews.fill(source, tmp_path / "artifacts")
    data = tmp_path / "server/data"
    _import(source, data)
    with sqlite3.connect(_path(source)) as database:
        database.execute("UPDATE label_schemas SET name = 'renamed', last_update_time = 7 WHERE schema_id = ?", (ids["schema"],))
        database.execute("UPDATE review_queues SET name = 'other', name_key = 'other', last_update_time_ms = 7 WHERE queue_id = ?", (ids["queue"],))
        database.execute("DELETE FROM review_queue_items WHERE status = 'pending'")
        database.execute("UPDATE issues SET description = 'e' WHERE name = 'large'")
        database.execute("DELETE FROM mcp_server_versions WHERE version = '2.0.0-rc.1'")
    database.close()
    report = _import(source, data)
    for kind, count in _COUNTS.items():
        assert f"{kind}: 0 imported, 1 updated, {count - 1} unchanged" in report, report
    run("export", "--to", tmp_path / "export.db", "--data", data)
    expected, found = reviews.rows(_path(source)), reviews.rows(tmp_path / "export.db")
    for table, rows in expected.items():
        assert found[table] == rows, table

    server = ServerlessMlflow(tmp_path / "server")
    change = {"issue_id": ids["issue"], "status": "resolved"}
    assert requests.patch(f"{server.url}/api/3.0/mlflow/issues/{ids['issue']}", json=change, timeout=60).status_code == 200
    server.stop()
    with sqlite3.connect(_path(source)) as database:
        database.execute("UPDATE issues SET description = 'there' WHERE issue_id = ?", (ids["issue"],))
    database.close()
    assert f"issues: 1 left alone, changed here since they were imported: {ids['issue']}" in _import(source, data)


def _assess_trace(url: str, issue: str) -> None:
    """Creates a trace in experiment 0 that exhibits an issue."""
    trace = "tr-" + "7" * 32
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    info = {"trace_id": trace, "trace_location": place, "request_time": "2024-01-01T00:00:00Z", "state": "OK"}
    answer = requests.post(f"{url}/api/3.0/mlflow/traces", json={"trace": {"trace_info": info}}, timeout=60)
    assert answer.status_code == 200, answer.text
    assessment = {"assessment_name": issue, "trace_id": trace, "source": {"source_type": "HUMAN", "source_id": "ann"}, "issue": {"issue_name": "issue"}}
    answer = requests.post(f"{url}/api/3.0/mlflow/traces/{trace}/assessments", json={"assessment": assessment}, timeout=60)
    assert answer.status_code == 200, answer.text


def _issue_references(file: Path) -> set[tuple[str, str]]:
    """Returns the traces of a database and the issues that their assessments refer to."""
    database = sqlite3.connect(file)
    found = database.execute("SELECT trace_id, name FROM assessments WHERE assessment_type = 'issue'").fetchall()
    database.close()
    assert len({trace for trace, _ in found}) == len(found)
    return set(found)


def test_what_is_taken_needs_another_name(tmp_path: Path) -> None:
    export = tmp_path / "export.db"
    server = ServerlessMlflow(tmp_path)
    api = f"{server.url}/api/3.0/mlflow"
    schema = {"experiment_id": "0", "name": "schema", "type": "FEEDBACK", "input": {"text": {}}}
    queue = {"experiment_id": "0", "name": "queue", "queue_type": "CUSTOM", "users": ["ann"]}
    issue = {"experiment_id": "0", "name": "issue", "description": "d"}
    created = {}
    for path, body in (("label-schemas/create", schema), ("review-queues/create", queue), ("issues", issue), ("mcp-servers", {"name": "io.example/first"})):
        answer = requests.post(f"{api}/{path}", json=body, timeout=60)
        assert answer.status_code == 200, (path, answer.text)
        created[path] = answer.json()
    issue_id = created["issues"]["issue"]["issue_id"]
    _assess_trace(server.url, issue_id)
    server.stop()
    run("export", "--to", export, "--data", tmp_path / "data")
    with sqlite3.connect(export) as database:
        # Otherwise, the trace would have spans in a file.
        database.execute("INSERT INTO trace_tags (request_id, key, value) SELECT request_id, 'mlflow.trace.spansLocation', 'TRACKING_STORE' FROM trace_info")
    database.close()
    assert "id is taken" in _import(export, tmp_path / "data", fails=True)
    for form in ("1 imported", "0 imported, 0 updated, 1 unchanged"):
        report = _import(export, tmp_path / "data", "--remap")
        for kind in _COUNTS:
            assert f"{kind}: {form}" in report, report
    run("export", "--to", tmp_path / "second.db", "--data", tmp_path / "data")
    found = reviews.rows(tmp_path / "second.db")
    names = {table: sorted(row["name"] for row in found[table]) for table in ("label_schemas", "review_queues", "mcp_servers")}
    assert names == {
        "label_schemas": ["schema", "schema (imported)"],
        "review_queues": ["queue", "queue (imported)"],
        "mcp_servers": ["io.example/first", "io.example/first-imported"],
    }
    assert len(found["issues"]) == 2
    # The assessment of the imported trace refers to the imported issue.
    assert {name for _, name in _issue_references(tmp_path / "second.db")} == {row["issue_id"] for row in found["issues"]}
    server = ServerlessMlflow(tmp_path)
    searched = {"experiment_id": "0", "include_trace_count": True}
    counted = requests.post(f"{server.url}/api/3.0/mlflow/issues/search", json=searched, timeout=60).json()["issues"]
    server.stop()
    assert [issue["trace_count"] for issue in counted] == [1, 1]
