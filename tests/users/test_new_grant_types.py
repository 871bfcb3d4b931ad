"""Tests that grants of types that earlier versions stored without effect are listed, and that endpoints
of features that are switched off require users to sign in.
"""

from pathlib import Path

import requests

from tests.support.servers import ServerlessMlflow
from tests.users.test_audit import _command
from tests.users.world import ADMIN, PASSWORD, V2, V3

_REFUSED = (
    ("GET", "/api/3.0/mlflow/gateway/budgets/list", 501),
    ("POST", "/gateway/mlflow/v1/chat/completions", 501),
    ("POST", "/ajax-api/3.0/mlflow/genai/evaluate/invoke", 500),
    ("POST", "/ajax-api/3.0/mlflow/issues/invoke", 500),
    ("POST", "/ajax-api/3.0/mlflow/assistant/message", 403),
    ("GET", "/ajax-api/3.0/jobs/x", 404),
)


def test_grants_are_listed_by_type(tmp_path: Path) -> None:
    data = tmp_path / "server/data"
    _command(data, "admin", "create", ADMIN)
    server = ServerlessMlflow(tmp_path / "server", options=("--auth", "basic", "--no-ui"), artifact_root="mlflow-artifacts:/")
    try:
        _make_grants(server.url)
        for method, path, status in _REFUSED:
            answers = [requests.request(method, server.url + path, auth=auth, json={}, timeout=60) for auth in (None, ("ann", PASSWORD))]
            assert [answer.status_code for answer in answers] == [401, status], path
        # Only callers who may see all experiments can search the issues of all experiments.
        requests.post(f"{server.url}{V2}/users/create", auth=(ADMIN, PASSWORD), json={"username": "bob", "password": PASSWORD}, timeout=60)
        denied = {"username": "bob", "resource_type": "experiment", "resource_id": "0", "permission": "DENY"}
        requests.post(f"{server.url}{V3}/users/permissions/grant", auth=(ADMIN, PASSWORD), json=denied, timeout=60)
        found = [requests.post(f"{server.url}{V3}/issues/search", auth=(name, PASSWORD), json={}, timeout=60) for name in (ADMIN, "bob")]
        statuses = [answer.status_code for answer in found]
        assert statuses == [200, 403], statuses
    finally:
        server.stop()
    listed = _command(data, "admin", "grants").splitlines()
    assert listed == [
        # The grant that the creator of the server gets.
        f"user {ADMIN}\tmcp_server\tio.example/first\tMANAGE\tdefault",
        "user ann\tmcp_server\tio.example/first\tREAD\tdefault",
        "user ann\treview_queue\t*\tDENY\tdefault",
        "role reviewers\tmcp_server_version\t*\tEDIT\tdefault",
    ]
    assert _command(data, "admin", "grants", "--type", "experiment") .splitlines() == [
        "user ann\texperiment\t0\tEDIT\tdefault",
        "user bob\texperiment\t0\tDENY\tdefault",
    ]
    assert _command(data, "admin", "grants", "--type", "prompt") == "There are no grants of type prompt."


def _make_grants(url: str) -> None:
    def post(path: str, body: dict) -> dict:
        answer = requests.post(f"{url}{path}", auth=(ADMIN, PASSWORD), json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    post(f"{V2}/users/create", {"username": "ann", "password": PASSWORD})
    post(f"{V3}/mcp-servers", {"name": "io.example/first"})
    for kind, pattern, level in (("mcp_server", "io.example/first", "READ"), ("review_queue", "*", "DENY"), ("experiment", "0", "EDIT")):
        post(f"{V3}/users/permissions/grant", {"username": "ann", "resource_type": kind, "resource_id": pattern, "permission": level})
    role = post(f"{V3}/roles/create", {"name": "reviewers", "workspace": "default"})["role"]
    grant = {"role_id": role["id"], "resource_type": "mcp_server_version", "resource_pattern": "*", "permission": "EDIT"}
    post(f"{V3}/roles/permissions/add", grant)
