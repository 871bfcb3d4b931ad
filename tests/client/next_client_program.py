"""Uses label schemas, review queues, issues, MCP servers and skills with the client of MLflow 3.18,
which runs in a process of its own.
"""

import sys
from pathlib import Path

import mlflow
from mlflow.entities import IssueReference
from mlflow.entities.issue import IssueSeverity, IssueStatus
from mlflow.entities.mcp_server_version import MCPStatus
from mlflow.exceptions import MlflowException
from mlflow.genai import label_schemas, review_queues


def _refused(call, *arguments, **named) -> str:
    try:
        call(*arguments, **named)
    except MlflowException as error:
        return error.error_code
    raise AssertionError(f"{call.__name__} was not refused")


def _reviews(experiment: str, traces: list[str]) -> None:
    schema = label_schemas.create_label_schema(
        "quality", type="feedback", input=label_schemas.InputCategorical(options=["good", "bad"]), instruction="How is it?", enable_comment=True
    )
    assert label_schemas.get_label_schema(experiment_id=experiment, name="quality").schema_id == schema.schema_id
    label_schemas.update_label_schema(schema.schema_id, instruction="And now?")
    assert {found.name: found.instruction for found in label_schemas.list_label_schemas()}["quality"] == "And now?"
    assert len(label_schemas.list_label_schemas()) == 2
    queue = review_queues.create_review_queue("Answers", queue_type="custom", users=["Ann", "bob"], schema_ids=[schema.schema_id])
    assert review_queues.get_review_queue(name="ANSWERS").queue_id == queue.queue_id
    assert _refused(review_queues.create_review_queue, "answers", queue_type="custom") == "RESOURCE_ALREADY_EXISTS"
    mine = review_queues.get_or_create_user_queue("carl")
    assert [found.name for found in review_queues.list_review_queues()] == [mine.name, "Answers"]
    assert len(review_queues.add_items_to_review_queue(queue.queue_id, item_ids=traces)) == 2
    assert _refused(review_queues.add_items_to_review_queue, queue.queue_id, item_ids=["tr-none"]) == "RESOURCE_DOES_NOT_EXIST"
    assert _refused(review_queues.update_review_queue, queue.queue_id, schema_ids=[]) == "INVALID_PARAMETER_VALUE"
    review_queues.set_review_queue_item_status(queue.queue_id, item_id=traces[0], status="complete", completed_by="ann")
    complete = review_queues.list_review_queue_items(queue.queue_id, status="complete")
    assert [(item.item_id, item.completed_by) for item in complete] == [(traces[0], "ann")]
    review_queues.remove_items_from_review_queue(queue.queue_id, item_ids=traces[:1])
    assert [item.item_id for item in review_queues.list_review_queue_items(queue.queue_id)] == traces[1:]
    review_queues.update_review_queue(queue.queue_id, name="Replies", users=["dave"])
    assert review_queues.get_review_queue(queue.queue_id).users == ["dave"]
    review_queues.delete_review_queue(queue.queue_id)
    label_schemas.delete_label_schema(schema_id=schema.schema_id)
    assert _refused(review_queues.get_review_queue, queue.queue_id) == "RESOURCE_DOES_NOT_EXIST"


def _issues(experiment: str, traces: list[str]) -> None:
    store = mlflow.MlflowClient()._tracking_client.store
    slow = store.create_issue(experiment, "slow", "It is slow.", severity=IssueSeverity.HIGH, categories=["latency"], metadata={"k": "v"})
    own = store.create_issue(experiment, "wrong", "It is wrong.", issue_id="iss-of_mine")
    assert _refused(store.create_issue, experiment, "wrong", "again", issue_id="iss-of_mine") == "RESOURCE_ALREADY_EXISTS"
    for trace in traces:
        mlflow.log_assessment(trace, IssueReference(issue_id=slow.issue_id, issue_name="slow"))
    found = store.search_issues(experiment, include_trace_count=True, include_total_count=True)
    assert {issue.issue_id: issue.trace_count for issue in found} == {slow.issue_id: 2, own.issue_id: 0}
    changed = store.update_issue(slow.issue_id, status=IssueStatus.RESOLVED, metadata={"l": "w"}, delete_metadata_keys=["k"])
    assert store.get_issue(slow.issue_id).metadata == changed.metadata == {"l": "w"}
    assert [issue.name for issue in store.search_issues(experiment, filter_string="status = 'resolved'")] == ["slow"]
    assert [issue.name for issue in store.search_issues(experiment, order_by=["name DESC"])] == ["wrong", "slow"]


def _servers() -> None:
    client = mlflow.MlflowClient()
    name = "com.example/weather-reports"
    client.create_mcp_server(name, description="Weather")
    for version in ("1.0.0", "1.10.0-rc.1", "1.2.0"):
        client.create_mcp_server_version({"name": name, "version": version, "description": version}, status=MCPStatus.ACTIVE, tools=[])
    assert client.get_latest_mcp_server_version(name).version == "1.10.0-rc.1"
    client.set_mcp_server_alias(name, "stable", "1.2.0")
    assert client.get_mcp_server_version_by_alias(name, "stable").version == "1.2.0"
    client.set_mcp_server_tag(name, "team/name", "search")
    client.set_mcp_server_version_tag(name, "1.0.0", "k", "v")
    endpoint = client.create_mcp_access_endpoint(name, "https://mcp.example.com/", server_alias="stable")
    assert [found.id for found in client.search_mcp_access_endpoints(name)] == [endpoint.id]
    assert [found.name for found in client.search_mcp_servers(filter_string="tags.`team/name` = 'search'")] == [name]
    assert len(client.search_mcp_server_versions(name)) == 3
    client.update_mcp_server_version(name, "1.10.0-rc.1", status=MCPStatus.DEPRECATED)
    assert client.get_latest_mcp_server_version(name).version == "1.2.0"
    client.delete_mcp_server_alias(name, "stable")
    assert _refused(client.delete_mcp_server_version, name, "1.2.0") == "INVALID_PARAMETER_VALUE"
    client.update_mcp_server_version(name, "1.2.0", status=MCPStatus.DEPRECATED)
    client.delete_mcp_server_version(name, "1.2.0")
    client.delete_mcp_server_tag(name, "team/name")
    server = client.get_mcp_server(name)
    assert (server.tags, server.latest_version) == ({}, "1.0.0")
    client.update_mcp_server_version(name, "1.0.0", status=MCPStatus.DEPRECATED)
    client.delete_mcp_server(name)
    assert _refused(client.get_mcp_server, name) == "RESOURCE_DOES_NOT_EXIST"


def _skills(directory: Path) -> None:
    client = mlflow.MlflowClient()
    local = directory / "local"
    manifest = b"---\nname: code-review\ndescription: Reviews code.\n---\n"
    files = {"SKILL.md": manifest, "docs/a b.md": b"", "docs/deep/ä.bin": bytes(range(256))}
    _write(local, files)
    first = mlflow.genai.register_skill(source=str(local), organization="acme")
    assert (first.name, first.version, first.source_type) == ("code-review", 1, "mlflow")
    _write(local, {"SKILL.md": manifest + b"More.\n"})
    second = mlflow.genai.register_skill(source=str(local), organization="acme", status="draft")
    assert (second.version, second.digest != first.digest) == (2, True)

    client.set_skill_alias(name="code-review", organization="acme", alias="next", version=2)
    for uri, more in (("@acme/code-review", b""), ("@acme/code-review/1", b""), ("@acme/code-review@next", b"More.\n")):
        pulled = Path(mlflow.genai.pull(f"skills:/{uri}", destination=directory / f"pulled {uri.replace('/', ' ')}"))
        found = {file.relative_to(pulled).as_posix(): file.read_bytes() for file in pulled.rglob("*") if file.is_file()}
        assert found == files | {"SKILL.md": manifest + more}, (uri, found)
    client.delete_skill_alias(name="code-review", organization="acme", alias="next")
    assert _refused(mlflow.genai.pull, "skills:/@acme/code-review@next", destination=directory / "none") == "RESOURCE_DOES_NOT_EXIST"

    git = "https://example.com/skills.git"
    batch = [{"name": name, "source_type": "git", "source": git, "ref": "v1", "subpath": name, "digest": first.digest} for name in ("write", "read")]
    registered = client.bulk_register_skills(skill_definitions=batch)
    again = client.bulk_register_skills(skill_definitions=batch)
    assert [(version.name, version.version) for version in again] == [("write", 1), ("read", 1)] == [(version.name, version.version) for version in registered]
    client.create_skill_version(name="read", source=git, digest=second.digest)
    assert client.get_latest_skill_version(name="read").version == 2
    client.set_skill_tag(name="read", key="team/name", value="search")
    client.set_skill_version_tag(name="read", version=1, key="k", value="v")
    client.update_skill(name="read", description="Reads.")

    assert [skill.name for skill in mlflow.genai.search_skills()] == ["read", "write", "code-review"]
    assert [skill.name for skill in mlflow.genai.search_skills(filter_string="organization = 'acme'")] == ["code-review"]
    assert [skill.name for skill in mlflow.genai.search_skills(filter_string="tags.`team/name` = 'search'")] == ["read"]
    page = mlflow.genai.search_skills(max_results=2, order_by=["name DESC"])
    rest = mlflow.genai.search_skills(max_results=2, order_by=["name DESC"], page_token=page.token)
    assert [skill.name for skill in [*page, *rest]] == ["write", "read", "code-review"]
    assert [version.version for version in client.search_skill_versions(name="read", filter_string="tags.k = 'v'")] == [1]

    client.delete_skill_tag(name="read", key="team/name")
    client.delete_skill_version_tag(name="read", version=1, key="k")
    read = client.get_skill(name="read")
    assert (read.tags, read.description, read.latest_version) == ({}, "Reads.", 2)
    client.update_skill_version(name="read", version=2, status="deprecated")
    client.delete_skill_version(name="read", version=2)
    assert client.get_latest_skill_version(name="read").version == 1
    client.delete_skill(name="code-review", organization="acme")
    assert _refused(mlflow.genai.pull, "skills:/@acme/code-review/1", destination=directory / "none") == "RESOURCE_DOES_NOT_EXIST"


def _write(directory: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)


def _trace() -> str:
    with mlflow.start_span("answer") as span:
        return span.trace_id


def main() -> None:
    mlflow.set_tracking_uri(sys.argv[1])
    experiment = mlflow.create_experiment("next client", artifact_location=f"file://{sys.argv[2]}")
    mlflow.set_experiment(experiment_id=experiment)
    traces = [_trace(), _trace()]
    mlflow.flush_trace_async_logging()
    _reviews(experiment, traces)
    _issues(experiment, traces)
    _servers()
    _skills(Path(sys.argv[2]))


main()
