"""Tests that a permission revoked by one process is refused by another for each request that begins
after the response, while the other one handles a load of the user's requests.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, binary
from tests.users.world import ADMIN, PASSWORD, V2, V3

#: Runs in one process, so that the two servers start only once.
pytestmark = pytest.mark.xdist_group("revocations")

_CALLERS = 6
#: Minimum number of requests before and after the revocation.
_ENOUGH = 60
_PATIENCE_SECONDS = 120

Changes = tuple[str, str, dict]


@dataclass
class Pair:
    """Two servers with the same data, and an experiment of the administrator."""

    one: str
    other: str
    data: Path
    experiment: str = ""

    def command(self, *arguments: str) -> str:
        command = [str(binary()), *arguments, "--data", str(self.data)]
        done = subprocess.run(
            command, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=120, check=True, env=child_environment()
        )
        return done.stdout.strip()

    def change(self, method: str, path: str, body: dict) -> dict:
        answer = requests.request(method, f"{self.one}{path}", json=body, auth=(ADMIN, PASSWORD), timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass
class Load:
    """Threads that read the experiment from the other server, and the statuses of the responses by
    the time at which each request began.
    """

    url: str
    prepare: Callable[[requests.Session], None]
    answers: list[tuple[float, int]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        session = requests.Session()
        self.prepare(session)
        while not self.stop.is_set():
            begun = time.monotonic()
            self.answers.append((begun, session.get(self.url, timeout=120).status_code))

    def wait(self, count: int) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(self.answers) < count:
            assert time.monotonic() < end, f"{len(self.answers)} of {count}"
            time.sleep(0.01)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("revocations") / "server"
    pair = Pair("", "", directory / "data")
    pair.command("admin", "create", ADMIN)
    options = ("--auth", "basic", "--no-ui", "--default-permission", "NO_PERMISSIONS")
    servers = []
    try:
        for _ in range(2):
            servers.append(ServerlessMlflow(directory, options=options, artifact_root="mlflow-artifacts:/"))
        pair.one, pair.other = (server.url for server in servers)
        pair.experiment = pair.change("POST", f"{V2}/experiments/create", {"name": "e"})["experiment_id"]
        yield pair
    finally:
        for server in servers:
            server.stop()


def _basic(name: str) -> Callable[[requests.Session], None]:
    def prepare(session: requests.Session) -> None:
        session.auth = (name, PASSWORD)

    return prepare


def _cases(pair: Pair, kind: str, name: str) -> tuple[Callable[[requests.Session], None], Callable[[], object]]:
    """Returns a function that sets the credentials of a session, and one that revokes
    the access.
    """
    of_experiment = {"username": name, "resource_type": "experiment", "resource_id": pair.experiment}
    pair.change("POST", f"{V2}/users/create", {"username": name, "password": PASSWORD})
    if kind in ("role", "role's grant"):
        role = pair.change("POST", f"{V3}/roles/create", {"name": name, "workspace": "default"})["role"]["id"]
        of_role = {"role_id": role, "resource_type": "experiment", "resource_pattern": pair.experiment, "permission": "READ"}
        grant = pair.change("POST", f"{V3}/roles/permissions/add", of_role)["role_permission"]["id"]
        assigned = {"username": name, "role_id": role}
        pair.change("POST", f"{V3}/roles/assign", assigned)
        if kind == "role":
            return _basic(name), lambda: pair.change("DELETE", f"{V3}/roles/unassign", assigned)
        return _basic(name), lambda: pair.change("DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": grant})
    pair.change("POST", f"{V3}/users/permissions/grant", {**of_experiment, "permission": "READ"})
    match kind:
        case "grant":
            return _basic(name), lambda: pair.change("POST", f"{V3}/users/permissions/revoke", of_experiment)
        case "password":
            other = {"username": name, "password": "another horse battery"}
            return _basic(name), lambda: pair.change("PATCH", f"{V2}/users/update-password", other)
        case "deletion":
            return _basic(name), lambda: pair.change("DELETE", f"{V2}/users/delete", {"username": name})
        case "disabling":
            return _basic(name), lambda: pair.command("admin", "disable", name)
        case "token":
            token = pair.command("token", "create", name, "of a test")
            return lambda session: session.headers.update(authorization=f"Bearer {token}"), lambda: pair.command("token", "revoke", name, "1")
        case "session":
            return _of_session(pair, name)
    raise ValueError(kind)


def _of_session(pair: Pair, name: str) -> tuple[Callable[[requests.Session], None], Callable[[], object]]:
    own = {"sec-fetch-site": "same-origin"}
    form = {"username": name, "password": PASSWORD}
    signed_in = requests.post(f"{pair.one}/signin", data=form, headers={"origin": pair.one}, timeout=120, allow_redirects=False)
    assert signed_in.status_code == 303
    # The name of the cookie contains the port.
    here, there = (url.rsplit(":", 1)[1] for url in (pair.one, pair.other))
    cookies = dict(signed_in.cookies)

    def header(port: str, companion: bool) -> str:
        kept = {key.replace(here, port): value for key, value in cookies.items() if companion or key != "mlflow_user"}
        return "; ".join(f"{key}={value}" for key, value in kept.items())

    def sign_out() -> None:
        headers = {**own, "cookie": header(here, companion=False)}
        assert requests.get(f"{pair.one}/ajax-api/2.0/mlflow/users/current", headers=headers, timeout=120).status_code == 401

    return lambda session: session.headers.update({**own, "cookie": header(there, companion=True)}), sign_out


@pytest.mark.parametrize("kind", ["grant", "role", "role's grant", "token", "session", "password", "disabling", "deletion"])
def test_the_very_next_request_is_refused(kind: str, pair: Pair) -> None:
    prepare, take_away = _cases(pair, kind, kind.replace("'", "").replace(" ", "-"))
    load = Load(f"{pair.other}{V2}/experiments/get?experiment_id={pair.experiment}", prepare)
    threads = [threading.Thread(target=load.run) for _ in range(_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        load.wait(_ENOUGH)
        begun = time.monotonic()
        take_away()
        over = time.monotonic()
        load.wait(len(load.answers) + _CALLERS + _ENOUGH)
    finally:
        load.stop.set()
        for thread in threads:
            thread.join()
    before = {status for at, status in load.answers if at < begun - 1}
    after = [status for at, status in load.answers if at > over]
    assert before <= {200} and any(status == 200 for _, status in load.answers)
    # Some requests with wrong passwords are rate limited.
    assert len(after) >= _ENOUGH and set(after) <= {401, 403, 429}, set(after)
