"""Label schemas, review queues, issues and MCP servers that MLflow's own store writes."""

import json
import sqlite3
from pathlib import Path

UNICODE = "ünïcode 漢字 🙂"
_TRACES = ["tr-" + digit * 32 for digit in "12"]


def _fill_traces(store, experiment: str) -> None:
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState

    for number, trace in enumerate(_TRACES):
        place = TraceLocation.from_experiment_id(experiment)
        store.start_trace(TraceInfo(trace, place, 1_700_000_000_000 + number, TraceState.IN_PROGRESS))


def fill(url: str, directory: Path) -> dict[str, str]:
    """Fills a database of the installed release, and returns the ids of some entities by name."""
    from mlflow.entities import IssueReference
    from mlflow.entities.issue import IssueSeverity, IssueStatus
    from mlflow.genai.label_schemas.label_schemas import InputCategorical, InputNumeric, InputPassFail, InputText
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(url, str(directory))
    experiment = store.create_experiment("reviewed")
    gone = store.create_experiment("gone")
    run = store.create_run(experiment, "ann", 1, [], "run").info.run_id
    _fill_traces(store, experiment)
    inputs = {
        "text": InputText(max_length=50),
        UNICODE: InputCategorical(options=["a", UNICODE], multi_select=True),
        "number": InputNumeric(min_value=0.5, max_value=None),
        "choice": InputPassFail(positive_label="yes", negative_label="no"),
    }
    schemas = {
        name: store.create_label_schema(
            experiment, name=name, type="expectation" if name == "text" else "feedback", input=value, instruction=UNICODE, enable_comment=name == "choice"
        ).schema_id
        for name, value in inputs.items()
    }
    default = next(schema for schema in store.list_label_schemas(experiment) if schema.is_default)
    of_queue = [schemas["text"], schemas["choice"], default.schema_id]
    queue = store.create_review_queue(
        experiment, name="Zwei " + UNICODE, queue_type="custom", created_by="ann", users=["Bob", "ann"], schema_ids=of_queue
    ).queue_id
    store.get_or_create_user_queue(experiment, user="Carl")
    store.add_items_to_review_queue(queue, item_ids=_TRACES)
    store.set_review_queue_item_status(queue, item_id=_TRACES[0], status="complete", completed_by="ann")
    issue = store.create_issue(
        experiment, "slow", UNICODE, IssueStatus.PENDING, IssueSeverity.HIGH, ["a", UNICODE], run, ["cost", "latency"], "ann"
    ).issue_id
    for trace in _TRACES:
        store.create_assessment(IssueReference(issue_id=issue, issue_name="slow", trace_id=trace))
    store.create_issue(experiment, "large", "d" * 60_000)
    store.create_issue(gone, "of a deleted experiment", "d")
    store.delete_experiment(gone)
    _fill_servers(store)
    store.engine.dispose()
    return {"experiment": experiment, "queue": queue, "issue": issue, "schema": schemas["text"]}


def _fill_servers(store) -> None:
    from mlflow.entities.mcp_server_version import MCPStatus

    name = "io.example/weather"
    store.create_mcp_server(name, description=UNICODE, created_by="ann")
    store.create_mcp_server("io.example/empty")
    for version, status in (("1.0.0", "active"), ("2.0.0-rc.1", "active"), ("0.9.0+build.1", "deprecated"), ("3.0.0", "draft")):
        server = {"name": name, "version": version, "description": f"version {version}", "number": 123456789012345678901234567890}
        store.create_mcp_server_version(server, source="https://example.com", status=MCPStatus("active"), created_by="ann")
        if status != "active":
            store.update_mcp_server_version(name, version, status=MCPStatus(status), last_updated_by="eve")
    store.set_mcp_server_tag(name, "a/key", UNICODE)
    store.set_mcp_server_version_tag(name, "1.0.0", "key", "value")
    store.set_mcp_server_alias(name, "stable", "1.0.0")
    store.create_mcp_access_endpoint(name, "https://mcp.example.com/sse", server_alias="stable")
    store.create_mcp_access_endpoint(name, "https://mcp.example.com/two", server_version="1.0.0")


def rows(file: Path) -> dict[str, list]:
    """Returns the rows of the tables of these entities, with names in place of ids that an import
    replaces, and without columns that are not kept or that only MLflow 3.18 has.
    """
    database = sqlite3.connect(file)
    database.row_factory = sqlite3.Row
    names = {row["schema_id"]: f"schema {row['name']}" for row in database.execute("SELECT * FROM label_schemas")}
    names |= {row["queue_id"]: f"queue {row['name']}" for row in database.execute("SELECT * FROM review_queues")}
    defaults = {row["schema_id"] for row in database.execute("SELECT schema_id FROM label_schemas WHERE is_default = 1")}
    tables = ["label_schemas", "review_queues", "review_queue_users", "review_queue_label_schemas", "review_queue_items", "issues"]
    tables += ["mcp_servers", "mcp_server_versions", "mcp_server_tags", "mcp_server_version_tags", "mcp_server_aliases"]
    found = {}
    for table in [*tables, "mcp_access_endpoints"]:
        entries = []
        for row in database.execute(f"SELECT * FROM {table}"):
            entry = {column: names.get(row[column], row[column]) for column in row.keys()}
            for column in ("server_json", "tools", "icons", "connect_options", "input_config", "root_causes", "categories"):
                if entry.get(column):
                    entry[column] = json.loads(entry[column])
            for column in ("last_seen_timestamp", "last_updated_by", "metadata"):
                entry.pop(column, None)
            if table == "label_schemas":
                del entry["created_by"]
                entry["input_config"] = {key: value for key, value in entry["input_config"].items() if value is not None}
                if row["schema_id"] in defaults:
                    # MLflow creates the default label schema when label schemas are first listed, so its
                    # times differ.
                    entry["created_time"] = entry["last_update_time"] = 0
            entries.append(entry)
        found[table] = sorted(entries, key=repr)
    database.close()
    return found
