"""A token that may only send traces can add to an existing trace, but neither reads nor changes it.

The test uses `serve` and the functions.
"""

import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import requests

from tests.clients.test_users import Deployed
from tests.clients.test_users import deployed as deployed  # noqa: PLC0414
from tests.support.servers import ServerlessMlflow
from tests.users.test_clients import Site
from tests.users.world import ADMIN, PASSWORD, V2, V3

#: All tests run in one process, so that the functions start only once.
pytestmark = pytest.mark.xdist_group("clients of users behind gateways")


@dataclass
class Place:
    url: str
    token: Callable[..., str]

    def ask(self, method: str, path: str, token: str = "", headers: dict | None = None, **content) -> requests.Response:
        headers = dict(headers or {})
        if token:
            headers["authorization"] = f"Bearer {token}"
        credentials = None if token else (ADMIN, PASSWORD)
        return requests.request(method, f"{self.url}{path}", headers=headers, auth=credentials, timeout=300, **content)

    def trace(self, identity: str) -> dict:
        answer = self.ask("GET", f"{V3}/traces/get", params={"trace_id": identity, "allow_partial": "true"})
        assert answer.status_code == 200, answer.text
        trace = answer.json()["trace"]
        trace["trace_info"].pop("assessments", None)
        return trace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("ingestion")
    site = Site("", directory / "server/data")
    site.command("admin", "create", ADMIN)
    server = ServerlessMlflow(directory / "server", options=("--auth", "basic", "--no-ui"), artifact_root="mlflow-artifacts:/")
    try:
        yield Place(server.url, lambda *options: site.command("token", "create", ADMIN, "of a test", *options))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def behind_functions(deployed: Deployed) -> Place:
    return Place(deployed.users, lambda *options: deployed.command("token", "create", ADMIN, "of a test", *options))


@pytest.mark.parametrize("where", ["served", "behind_functions"])
def test_a_token_for_traces_only_adds(where: str, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(where)
    made = place.ask("POST", f"{V2}/experiments/create", json={"name": uuid.uuid4().hex})
    experiment = made.json()["experiment_id"]
    token = place.token("--only", "ingest", "--experiment", experiment)
    identity = secrets.token_hex(16)

    def export(name: str, token: str) -> requests.Response:
        span = {"traceId": identity, "spanId": "00000000000000a1", "name": name, "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000"}
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        return place.ask("POST", "/v1/traces", token, {"x-mlflow-experiment-id": experiment}, json=body)

    def start(text: str, token: str) -> requests.Response:
        info = {
            "trace_id": f"tr-{identity}",
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
            "request_time": "2023-11-14T22:13:20Z",
            "execution_duration": "1s",
            "state": "OK" if text == "theirs" else "ERROR",
            "request_preview": text,
            "response_preview": text,
            "tags": {"key": text},
            "trace_metadata": {"key": text},
        }
        return place.ask("POST", f"{V3}/traces", token, json={"trace": {"trace_info": info}})

    for answer in (export("theirs", ""), start("theirs", "")):
        assert answer.status_code == 200, answer.text
    before = place.trace(f"tr-{identity}")
    assert "theirs" in str(before)
    for answer in (export("mine", token), start("mine", token)):
        assert (answer.status_code, "theirs" in answer.text) == (200, False), answer.text
    assert place.trace(f"tr-{identity}") == before
    # With credentials that may change traces, the request changes the trace.
    assert start("mine", "").status_code == 200
    assert place.trace(f"tr-{identity}")["trace_info"]["request_preview"] == "mine"
