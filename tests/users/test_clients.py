"""Tests that the stock client runs the README's example with a password and with tokens, and that
file contents are not changed in transit.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.support import warm
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, binary
from tests.users.world import ADMIN, PASSWORD, V2, V3

pytestmark = pytest.mark.xdist_group("clients of users")

_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Site:
    """A server with the user ann, who may create experiments, and its data directory
    for commands.
    """

    url: str
    data: Path

    def command(self, *arguments: str) -> str:
        command = [str(binary()), *arguments, "--data", str(self.data)]
        done = subprocess.run(command, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.strip()

    def token(self, *options: str) -> str:
        return self.command("token", "create", "ann", "of a test", *options)

    def status(self, method: str, path: str, token: str, body: dict | None = None) -> int:
        headers = {"authorization": f"Bearer {token}"}
        return requests.request(method, f"{self.url}{path}", headers=headers, json=body, timeout=120).status_code


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("clients")
    data = directory / "server/data"
    site = Site("", data)
    site.command("admin", "create", ADMIN)
    server = ServerlessMlflow(directory / "server", options=("--auth", "basic", "--no-ui"), artifact_root="mlflow-artifacts:/")
    try:
        site.url = server.url
        body = {"username": "ann", "password": PASSWORD}
        made = requests.post(f"{site.url}{V2}/users/create", json=body, auth=(ADMIN, PASSWORD), timeout=120)
        assert made.status_code == 200, made.text
        yield site
    finally:
        server.stop()


def _run(site: Site, directory: Path, program: list[str], **environment: str) -> str:
    settings = child_environment(
        MLFLOW_TRACKING_URI=site.url, MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true", **environment
    )
    done = warm.run(program, settings, directory)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("by", ["token", pytest.param("password", marks=pytest.mark.slow), pytest.param("token as a password", marks=pytest.mark.slow)])
def test_the_example_runs(by: str, site: Site, tmp_path: Path) -> None:
    credentials = {
        "password": lambda: {"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": PASSWORD},
        "token": lambda: {"MLFLOW_TRACKING_TOKEN": site.token()},
        "token as a password": lambda: {"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": site.token()},
    }
    said = _run(site, tmp_path, [str(_REPOSITORY / "examples/quickstart.py")], **credentials[by]())
    assert said == (_REPOSITORY / "examples/quickstart.expected").read_text()


def test_a_token_for_traces_sends_them_and_reads_nothing(site: Site, tmp_path: Path) -> None:
    made = requests.post(
        f"{site.url}{V2}/experiments/create", json={"name": "traced"}, auth=("ann", PASSWORD), timeout=120
    ).json()["experiment_id"]
    token = site.token("--only", "ingest", "--experiment", made, "--days", "1")
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": made}}
    info = {"trace_id": f"tr-{1:032x}", "trace_location": location, "request_time": "2026-01-01T00:00:00Z", "state": "OK"}
    assert site.status("POST", f"{V3}/traces", token, {"trace": {"trace_info": info}}) == 200
    assert site.status("GET", f"{V3}/traces/{info['trace_id']}", token) == 403
    assert site.status("GET", f"{V2}/experiments/get?experiment_id={made}", token) == 403
    assert site.status("POST", f"{V2}/runs/create", token, {"experiment_id": made}) == 403


@pytest.mark.parametrize("content", [b"", "Größe\n".encode("latin-1"), bytes(range(256)) * 20_480], ids=["empty", "latin", "5 MB"])
def test_files_arrive_byte_for_byte(content: bytes, site: Site) -> None:
    headers = {"authorization": f"Bearer {site.token()}"}
    experiment = requests.post(f"{site.url}{V2}/experiments/create", json={"name": f"files {len(content)}"}, headers=headers, timeout=120)
    run = requests.post(f"{site.url}{V2}/runs/create", json=experiment.json(), headers=headers, timeout=120).json()
    location = run["run"]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    url = f"{site.url}/api/2.0/mlflow-artifacts/artifacts/{location}/file"
    assert requests.put(url, data=content, headers=headers, timeout=120).status_code == 200
    assert requests.get(url, headers=headers, timeout=120).content == content
    assert requests.get(url, timeout=120).status_code == 401


def test_commands_list_and_revoke(site: Site) -> None:
    token = site.token("--only", "read")
    listed = [line.split("\t") for line in site.command("token", "list", "ann").splitlines()]
    last = listed[-1]
    assert (last[1], last[2]) == ("of a test", "read-only")
    assert site.status("GET", f"{V3}/users/current/permissions", token) == 200
    assert site.command("token", "revoke", "ann", last[0]) == "Revoked the token."
    assert site.status("GET", f"{V3}/users/current/permissions", token) == 401
    for word, status in [("disable", 401), ("enable", 200)]:
        site.command("admin", word, "ann")
        answer = requests.get(f"{site.url}{V2}/users/current", auth=("ann", PASSWORD), timeout=120)
        assert answer.status_code == status, word
