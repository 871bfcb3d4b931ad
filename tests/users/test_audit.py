"""Tests that the log contains sign-ins, denials, and changes of users and permissions, and no
secrets even at the most verbose level.
"""

import base64
import re
import subprocess
from pathlib import Path

import requests

from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, binary
from tests.users.world import ADMIN, PASSWORD, V2, V3

_NEW, _WRONG = "another horse battery", "a wrong horse battery"


def _command(data: Path, *arguments: str) -> str:
    command = [str(binary()), *arguments, "--data", str(data)]
    done = subprocess.run(
        command, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=120, check=True, env=child_environment(RUST_LOG="debug")
    )
    assert PASSWORD not in done.stderr
    return done.stdout.strip()


def test_each_change_is_told_and_no_secret(tmp_path: Path) -> None:
    data = tmp_path / "server/data"
    _command(data, "admin", "create", ADMIN)
    options = ("--auth", "basic", "--no-ui", "--default-permission", "NO_PERMISSIONS")
    server = ServerlessMlflow(tmp_path / "server", options=options, artifact_root="mlflow-artifacts:/", environment={"RUST_LOG": "debug"})
    try:
        secrets = _work(server.url, data)
        _counters(server.url)
        log = server.process.log_text()
    finally:
        server.stop()
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in log.splitlines() if "audit" in line]
    told = {event for line in lines for event in re.findall(r'event="([^"]+)"', line)}
    assert told >= {
        *("known", "not signed in", "signed in", "signed out", "denied"),
        *("user created", "password changed", "granted", "revoked", "role created", "role assigned", "token revoked", "user deleted"),
    }, told
    assert any('event="denied"' in line and "ann" in line for line in lines)
    for what, secret in secrets.items():
        assert secret not in log, what
    # Prefix of `printf ann | sha256sum`.
    denied = [line for line in log.splitlines() if "experiments/get" in line and "49915e0d7d4b" in line]
    assert any("status" in line and "403" in line for line in denied), denied


def _counters(url: str) -> None:
    """Checks that only an administrator can read the counters, and that they contain no
    user data.
    """
    made = requests.post(f"{url}{V2}/users/create", auth=(ADMIN, PASSWORD), json={"username": "quixote", "password": PASSWORD}, timeout=120)
    assert made.status_code == 200, made.text
    assert requests.get(f"{url}/metrics", timeout=120).status_code == 401
    assert requests.get(f"{url}/metrics", auth=("quixote", PASSWORD), timeout=120).status_code == 403
    answer = requests.get(f"{url}/metrics", auth=(ADMIN, PASSWORD), timeout=120)
    assert answer.status_code == 200, answer.text
    assert 'mlflow_requests_total{route="POST /api/2.0/mlflow/users/create",status="200"} 2' in answer.text
    assert 'mlflow_dynamodb_write_units_total{route="POST /api/2.0/mlflow/users/create"}' in answer.text
    assert "quixote" not in answer.text


def _work(url: str, data: Path) -> dict[str, str]:
    """Performs each kind of operation as the administrator and as ann. Returns the secrets that
    must not be logged.
    """

    def ask(method: str, path: str, body: dict, user: str = ADMIN, password: str = PASSWORD, status: int = 200) -> dict:
        sent = {"params": body} if method == "GET" else {"json": body}
        answer = requests.request(method, f"{url}{path}", auth=(user, password), timeout=120, **sent)
        assert answer.status_code == status, answer.text
        return answer.json() if status == 200 else {}

    ask("POST", f"{V2}/users/create", {"username": "ann", "password": PASSWORD})
    made = ask("POST", f"{V2}/experiments/create", {"name": "e"})["experiment_id"]
    grant = {"username": "ann", "resource_type": "experiment", "resource_id": made}
    ask("GET", f"{V2}/experiments/get", {"experiment_id": made}, user="ann", status=403)
    ask("POST", f"{V3}/users/permissions/grant", {**grant, "permission": "READ"})
    ask("POST", f"{V3}/users/permissions/revoke", grant)
    role = ask("POST", f"{V3}/roles/create", {"name": "r", "workspace": "default"})["role"]["id"]
    ask("POST", f"{V3}/roles/assign", {"username": "ann", "role_id": role})
    ask("GET", f"{V2}/users/current", {}, user="ann", password=_WRONG, status=401)
    session = requests.Session()
    for password, status in ((_WRONG, 401), (PASSWORD, 303)):
        form = {"username": "ann", "password": password}
        answer = session.post(f"{url}/signin", data=form, headers={"origin": url}, timeout=120, allow_redirects=False)
        assert answer.status_code == status, answer.text
    cookies = dict(session.cookies)
    own = {"sec-fetch-site": "same-origin"}
    assert session.get(f"{url}/ajax-api/2.0/mlflow/users/current", headers=own, timeout=120).status_code == 200
    page = session.get(f"{url}/tokens", headers=own, timeout=120).text
    csrf = re.findall(r'csrf_token" value="([^"]+)"', page)[0]
    form = {"do": "create", "name": "n", "only": "read", "experiment": "", "days": "7", "csrf_token": csrf}
    page = session.post(f"{url}/tokens", data=form, headers={**own, "origin": url}, timeout=120).text
    token = re.findall(r"<code>([^<]+)</code>", page)[0]
    bearer = {"authorization": f"Bearer {token}"}
    assert requests.get(f"{url}{V3}/users/current/permissions", headers=bearer, timeout=120).status_code == 200
    form = {"do": "revoke", "id": "1", "csrf_token": csrf}
    session.post(f"{url}/tokens", data=form, headers={**own, "origin": url}, timeout=120).raise_for_status()
    # MLflow's page signs out by deleting the cookie that its script can read.
    del session.cookies["mlflow_user"]
    assert session.get(f"{url}/ajax-api/2.0/mlflow/users/current", headers=own, timeout=120).status_code == 401
    ask("PATCH", f"{V2}/users/update-password", {"username": "ann", "password": _NEW})
    ask("DELETE", f"{V2}/users/delete", {"username": "ann"})
    of_command = _command(data, "token", "create", "collector", "spans", "--service")
    sessions = {f"session {name}": value.rsplit(".", 1)[-1] for name, value in cookies.items() if name != "mlflow_user"}
    assert sessions
    basic = {f"header {password}": base64.b64encode(f"ann:{password}".encode()).decode() for password in (PASSWORD, _WRONG)}
    return {
        **sessions, **basic, "password": PASSWORD, "new": _NEW, "wrong": _WRONG, "as a form": PASSWORD.replace(" ", "+"),
        "token": token.rsplit("_", 1)[-1].rsplit(".", 1)[-1], "token of a service": of_command.rsplit(".", 1)[-1], "csrf": csrf, "hash": "$argon2",
    }
