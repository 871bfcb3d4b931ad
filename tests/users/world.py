"""Two servers with the same users and entities, one of them stock MLflow, and requests to both."""

import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.servers import NextStockMlflow, ServerlessMlflow, StockMlflow, binary

ADMIN, PASSWORD = "admin", "correct horse battery"

V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
HEADER = "X-MLFLOW-WORKSPACE"
#: The workspaces of servers with workspaces. Their entities have the same names.
WORKSPACES = ("default", "team-a", "team-b")


@dataclass
class Server:
    """One of the two servers, or a workspace of it, with the ids that placeholders stand for."""

    url: str
    ids: dict[str, str] = field(default_factory=dict)
    session: requests.Session = field(default_factory=requests.Session)
    workspace: str | None = None

    def within(self, workspace: str) -> "Server":
        """Returns a workspace of the server."""
        return Server(self.url, {}, self.session, workspace)

    def ask(
        self, user: str, method: str, path: str, content: Mapping[str, Any] | None = None, sent: str = "", workspace: str | None = None
    ) -> requests.Response:
        """Sends a request as a user. `$name` in it stands for the id that this server has for the
        name.

        `sent` specifies how the content is sent: as a query, as a body, as a span in the
        given experiment, or as some bytes that replace it. `workspace` overrides the workspace of
        this object.
        """
        filled = self._filled(dict(content or {}))
        of_request: dict[str, Any]
        match sent or ("query" if method == "GET" else "body"):
            case "query":
                of_request = {"params": filled}
            case "body":
                of_request = {"json": filled}
            case "bytes":
                of_request = {"data": b"content", "headers": {"content-type": "application/octet-stream"}}
            case "spans":
                headers = {"content-type": "application/x-protobuf", "x-mlflow-experiment-id": filled["experiment"]}
                of_request = {"data": _one_span(), "headers": headers}
            case other:
                raise ValueError(other)
        if named := workspace or self.workspace:
            of_request["headers"] = {**of_request.get("headers", {}), HEADER: named}
        return self.session.request(
            method, self.url + self._filled(path), auth=(user, PASSWORD) if user else None, timeout=120, **of_request
        )

    def make(self, name: str, method: str, path: str, content: Mapping[str, Any], *pointer: str) -> None:
        """Creates an entity as the administrator, and stores its id under a name."""
        answer = self.ask(ADMIN, method, path, content)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        found = answer.json()
        for step in pointer:
            found = found[step]
        self.ids[name] = str(found)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        for name in sorted(self.ids, key=len, reverse=True):
            value = value.replace(f"${name}", self.ids[name])
        return value


def _one_span() -> bytes:
    """Returns the export of a new trace with a single span."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = secrets.token_bytes(16), secrets.token_bytes(8), "root"
    span.start_time_unix_nano, span.end_time_unix_nano = 1_700_000_000_000_000_000, 1_700_000_001_000_000_000
    return request.SerializeToString()


@contextmanager
def both(
    directory: Path, default_permission: str, workspaces: bool = False, release: Path | None = None
) -> Iterator[tuple[Server, Server]]:
    """Starts stock MLflow and our server, each with an administrator, with or without workspaces.
    `release` is the directory of another release than the installed one, for servers without
    workspaces.
    """
    settings = directory / "basic_auth.ini"
    directory.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        f"[mlflow]\ndefault_permission = {default_permission}\n"
        f"database_uri = sqlite:///{directory / 'auth.db'}\nadmin_username = {ADMIN}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        # Without this cache, each request takes half a second to hash the password.
        "auth_cache_ttl_seconds = 3600\n"
    )
    mode = ["--enable-workspaces"] if workspaces else []
    options = ["--app-name", "basic-auth", *mode]
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "a secret of this test",
    }
    if release:
        stock: StockMlflow = NextStockMlflow(directory / "stock", release, environment=environment, options=options)
    else:
        stock = StockMlflow(
            directory / "stock",
            # Each workspace has its own part of the server's artifact storage.
            artifact_options=["--artifacts-destination", str(directory / "stock" / "artifacts")] if workspaces else None,
            options=options,
            environment=environment,
        )
    try:
        data = directory / "ours" / "data"
        command = [str(binary()), "admin", "create", ADMIN, "--data", str(data)]
        subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, capture_output=True, timeout=120)
        options = ["--auth", "basic", "--default-permission", default_permission, "--no-ui", "--artifacts-past-users"]
        options += ["--workspaces"] if workspaces else []
        root = {"artifact_root": "mlflow-artifacts:/"} if workspaces else {}
        ours = ServerlessMlflow(directory / "ours", options=options, **root)
        try:
            yield Server(stock.url), Server(ours.url)
        finally:
            ours.stop()
    finally:
        stock.stop()


def furnish(server: Server) -> None:
    """Creates the entities that are granted to users.

    These are three experiments with a run, a logged model, a trace, a label schema, a review queue,
    an issue and a dataset each, models, prompts and a scorer.
    """
    for number in (1, 2, 3):
        experiment = f"experiment{number}"
        server.make(experiment, "POST", f"{V2}/experiments/create", {"name": experiment}, "experiment_id")
        run = {"experiment_id": f"${experiment}"}
        server.make(f"run{number}", "POST", f"{V2}/runs/create", run, "run", "info", "run_id")
        model = {"experiment_id": f"${experiment}", "name": "logged", "source_run_id": f"$run{number}"}
        server.make(f"logged{number}", "POST", f"{V2}/logged-models", model, "model", "info", "model_id")
        outputs = {"run_id": f"$run{number}", "models": [{"model_id": f"$logged{number}", "step": 1}]}
        answer = server.ask(ADMIN, "POST", f"{V2}/runs/outputs", outputs)
        assert answer.status_code == 200, answer.text
        place = WORKSPACES.index(server.workspace or "default")
        trace = f"tr-{place:016x}{number:016x}"
        info = {
            "trace_id": trace,
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": f"${experiment}"}},
            "request_time": "2026-01-01T00:00:00Z",
            "state": "OK",
            "trace_metadata": {"mlflow.sourceRun": f"$run{number}", "mlflow.modelId": f"$logged{number}"},
        }
        answer = server.ask(ADMIN, "POST", f"{V3}/traces", {"trace": {"trace_info": info}})
        assert answer.status_code == 200, answer.text
        server.ids[f"trace{number}"] = trace
        source = {"source_type": "HUMAN", "source_id": "x"}
        feedback = {"assessment_name": "f", "feedback": {"value": True}, "source": source}
        path = f"{V3}/traces/{trace}/assessments"
        server.make(f"assessment{number}", "POST", path, {"assessment": feedback}, "assessment", "assessment_id")
        # Ids without their first characters, for requests that spell these differently.
        server.ids |= {f"logged{number}_rest": server.ids[f"logged{number}"][1:], f"trace{number}_rest": trace[2:]}
        dataset = {"name": f"dataset{number}", "experiment_ids": [f"${experiment}"]}
        schema = {"experiment_id": f"${experiment}", "name": "schema", "type": "FEEDBACK", "input": {"text": {}}}
        server.make(f"schema{number}", "POST", f"{V3}/label-schemas/create", schema, "label_schema", "schema_id")
        queue = {"experiment_id": f"${experiment}", "name": "queue", "queue_type": "CUSTOM"}
        server.make(f"queue{number}", "POST", f"{V3}/review-queues/create", queue, "review_queue", "queue_id")
        issue = {"experiment_id": f"${experiment}", "name": "n", "description": "d", "source_run_id": f"$run{number}"}
        server.make(f"issue{number}", "POST", f"{V3}/issues", issue, "issue", "issue_id")
        server.make(f"dataset{number}", "POST", f"{V3}/datasets/create", dataset, "dataset", "dataset_id")
    dataset = {"name": "shared", "experiment_ids": ["$experiment1", "$experiment2"]}
    server.make("shared", "POST", f"{V3}/datasets/create", dataset, "dataset", "dataset_id")
    for name in ("model1", "model2", "prompt1"):
        furnish_model(server, name)
    scorer = {"experiment_id": "$experiment1", "name": "scorer1", "serialized_scorer": '{"instructions_judge_pydantic_data": {}}'}
    answer = server.ask(ADMIN, "POST", f"{V3}/scorers/register", scorer)
    assert answer.status_code == 200, answer.text


def furnish_model(server: Server, name: str) -> None:
    """Creates a registered model or a prompt with this name, and a version of it that belongs to a
    run.
    """
    prompt = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]
    is_prompt = name.startswith("prompt")
    tags = prompt if is_prompt else []
    answer = server.ask(ADMIN, "POST", f"{V2}/registered-models/create", {"name": name, "tags": tags})
    assert answer.status_code == 200, answer.text
    text = [{"key": "mlflow.prompt.text", "value": "of a prompt"}] if is_prompt else []
    source = "prompt-template" if is_prompt else "s3://bucket/x"
    version = {"name": name, "source": source, "tags": [*tags, *text], "run_id": "$run1"}
    answer = server.ask(ADMIN, "POST", f"{V2}/model-versions/create", version)
    assert answer.status_code == 200, answer.text


def make_workspaces(pair: tuple[Server, Server]) -> list[tuple[Server, Server]]:
    """Creates workspaces on both servers, with the same names in each."""
    places = []
    for workspace in WORKSPACES:
        if workspace != "default":
            for server in pair:
                answer = server.ask(ADMIN, "POST", f"{V3}/workspaces", {"name": workspace})
                assert answer.status_code == 201, answer.text
        within = (pair[0].within(workspace), pair[1].within(workspace))
        for server in within:
            furnish(server)
        places.append(within)
    return places
