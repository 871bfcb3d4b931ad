"""Jobs and pods that exchange the identity token of their platform, with stock MLflow's client and this
project's package, and without any secret.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.sign_on.issuer import Issuer
from tests.sign_on.login_server import REPOSITORY, Laptop, LoginServer, forwarded, login_server
from tests.support import warm
from tests.support.http_server import Answer, Received, serving

#: One process runs all tests, so that the server starts only once.
pytestmark = pytest.mark.xdist_group("machines")

_TIMEOUT_SECONDS = 300
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT = "urn:ietf:params:oauth:token-type:jwt"
_REPOSITORY_ID = "123456789"
_GITLAB = "https://mlflow.example.com/gitlab"

_RULES = """
origins = ["{server}"]

[[machines]]
name = "github"
issuer = "{github}"
audience = "{server}"
user = "ci"
require = [{{ claim = "repository_id", values = ["{repository}"] }}, {{ claim = "ref", values = ["refs/heads/main"] }}]

[[machines]]
name = "gitlab"
issuer = "{github}"
audience = "{gitlab}"
user = "ci"
minutes = 1
require = [{{ claim = "project_id", values = ["42"] }}]

[[machines]]
name = "pods"
issuer = "https://kubernetes.default.svc.cluster.local"
audience = "{server}"
user = "pod"
only = "read"
keys = '{keys}'
require = [{{ claim = "sub", values = ["system:serviceaccount:team:training"] }}]
"""


class World:
    """A server with rules for an issuer that can be reached, and for one whose keys are in the rules."""

    def __init__(self, running: LoginServer, github: Issuer, cluster: Issuer, directory: Path):
        self.running = running
        self.github = github
        self.cluster = cluster
        self.url = running.url
        rules = directory / "providers.toml"
        keys = json.dumps(cluster.keys())
        rules.write_text(_RULES.format(server=self.url, github=github.url, gitlab=_GITLAB, repository=_REPOSITORY_ID, keys=keys))
        running.command("admin", "providers", str(rules), "--offline")

    def exchange(self, token: str) -> requests.Response:
        form = {"grant_type": _EXCHANGE, "subject_token": token, "subject_token_type": _JWT}
        return requests.post(f"{self.url}/oauth/token", form, timeout=_TIMEOUT_SECONDS)

    def job(self, **additions: str) -> dict[str, str]:
        """Returns the variables of a job of GitHub Actions."""
        return {
            "MLFLOW_TRACKING_URI": self.url,
            "MLFLOW_TRACKING_AUTH": "mlflow-serverless",
            "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.github.url}/job?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": Issuer.JOB,
        } | additions


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("machines")
    github, cluster = Issuer(), Issuer()
    cluster.url = "https://kubernetes.default.svc.cluster.local"
    github.claims = {"repository_id": _REPOSITORY_ID, "ref": "refs/heads/main", "sub": "repo:acme/training:ref:refs/heads/main"}
    cluster.claims = {"sub": "system:serviceaccount:team:training"}
    with github.running(), login_server(directory) as running:
        for user in ("ci", "pod"):
            running.command("token", "create", user, "made with the user", "--service", "--days", "1")
        yield World(running, github, cluster, directory)


@pytest.fixture
def machine(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def test_a_job_of_github_runs_the_quickstart_without_a_secret(world: World, machine: Laptop):
    done = warm.run([str(REPOSITORY / "examples/quickstart.py")], machine.environment(**world.job()), machine.home)
    assert done.stdout == (REPOSITORY / "examples/quickstart.expected").read_text(), done.stderr
    assert world.github.requested and set(world.github.requested) == {world.url}
    log = world.running.server.process.log_text()
    assert "repo:acme/training:ref:refs/heads/main" in log and "token exchanged" in log
    assert "mlflow-token_" not in log


def test_a_job_of_another_branch_is_refused_with_a_reason(world: World, machine: Laptop):
    world.github.claims["ref"] = "refs/heads/other"
    try:
        script = "import mlflow; mlflow.MlflowClient().search_experiments()"
        done = warm.run(["-c", script], machine.environment(**world.job()), machine.home)
    finally:
        world.github.claims["ref"] = "refs/heads/main"
    assert "refused the identity token from GitHub Actions" in done.stderr
    assert "satisfy no machine rule" in done.stderr


def test_a_pod_reads_with_keys_from_the_rules(world: World, machine: Laptop):
    token = machine.home / "token"
    token.write_text(world.cluster.token(world.url))
    variables = {"MLFLOW_TRACKING_URI": world.url, "MLFLOW_TRACKING_AUTH": "mlflow-serverless", "MLFLOW_OIDC_TOKEN_FILE": str(token)}
    script = """
import mlflow
client = mlflow.MlflowClient()
print(len(client.search_experiments()))
try:
    client.create_experiment("of a pod")
except Exception as error:
    print("PERMISSION_DENIED" in str(error) or "Permission denied" in str(error))
"""
    done = warm.run(["-c", script], machine.environment(**variables), machine.home)
    assert done.stdout == "0\nTrue\n", done.stderr


def test_a_job_of_gitlab_gets_a_token_for_a_minute(world: World):
    response = world.exchange(world.github.token(_GITLAB, project_id="42"))
    assert response.status_code == 200, response.text
    assert response.json()["expires_in"] == 60
    # Numbers in claims are compared with their text, because some issuers send them as numbers.
    assert world.exchange(world.github.token(_GITLAB, project_id=42)).status_code == 200
    assert world.exchange(world.github.token(_GITLAB, project_id="43")).status_code == 400


def _tokens(world: World) -> dict[str, str]:
    github, cluster, url = world.github, world.cluster, world.url
    stranger = Issuer()
    stranger.url, stranger.claims = github.url, github.claims
    valid = github.token(url)
    header, claims, signature = valid.split(".")
    _, other_claims, _ = github.token(url, repository_id="666").split(".")
    now = 1_000_000_000
    return {
        "not a JWT": "mlflow-token_x",
        "forged": stranger.token(url),
        "other claims": f"{header}.{other_claims}.{signature}",
        "without a signature": f"{header}.{claims}.",
        "none": github.unsigned(url),
        "HS256": github.token(url, {"alg": "HS256"}),
        "expired": github.token(url, iat=now, nbf=now, exp=now + 300),
        "not yet valid": github.token(url, nbf=now * 4, exp=now * 5),
        "another audience": github.token("https://other.example"),
        "several audiences": github.token([url, "https://other.example"]),
        "no audience": github.token(url, aud=None),
        "another issuer": github.token(url, iss="https://evil.example"),
        "almost the issuer": github.token(url, iss=f"{github.url}/"),
        "keys of another rule": cluster.token(url, iss=github.url, **github.claims),
        "audience of another rule": github.token(_GITLAB),
        "another repository": github.token(url, repository_id="666"),
        "by name": github.token(url, repository_id=None, repository="acme/training"),
    }


@pytest.mark.parametrize(
    "what",
    [
        *("not a JWT", "forged", "other claims", "without a signature", "none", "HS256", "expired", "not yet valid"),
        *("another audience", "several audiences", "no audience", "another issuer", "almost the issuer"),
        *("keys of another rule", "audience of another rule", "another repository", "by name"),
    ],
)
def test_a_token_that_is_not_valid_is_refused(world: World, what: str):
    response = world.exchange(_tokens(world)[what])
    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant"), response.text
    assert response.json()["error_description"].endswith(".")


def test_the_attacks_differ_from_a_token_that_is_accepted(world: World):
    assert len(_tokens(world)) == 17
    assert world.exchange(world.github.token(world.url)).status_code == 200
    assert world.exchange(world.cluster.token(world.url)).status_code == 200


def test_raw_identity_tokens_are_no_credentials(world: World):
    """MLflow's own `MLFLOW_TRACKING_AUTH=kubernetes` sends them with each request."""
    headers = {"authorization": f"Bearer {world.cluster.token(world.url)}"}
    response = requests.get(f"{world.url}/api/2.0/mlflow/users/current", headers=headers, timeout=_TIMEOUT_SECONDS)
    assert response.status_code == 401


_TRAINING = """
import pathlib, sys
import mlflow
mlflow.set_experiment(sys.argv[1])
enough = pathlib.Path(sys.argv[2])
with mlflow.start_run() as run:
    step = 0
    while not enough.exists():
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
        step += 1
print(len(mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")) == step)
"""


def _short_lived(world: World, seconds: int, each: Callable[[int], None]) -> Callable[[Received], Answer]:
    """Returns a proxy that shortens the lifetime of tokens. Calls `each` after every exchange."""
    exchanges = 0

    def forward(request: Received) -> Answer:
        nonlocal exchanges
        status, headers, content = forwarded(request, world.url)
        if urlsplit(request.target).path == "/oauth/token" and status == 200:
            content = json.dumps(json.loads(content) | {"expires_in": seconds}).encode()
            exchanges += 1
            each(exchanges)
        return status, headers, content

    return forward


def test_a_training_replaces_its_token_before_it_expires(world: World, machine: Laptop):
    enough = machine.home / "enough"

    def each(number: int) -> None:
        if number == 4:
            enough.touch()

    with serving(_short_lived(world, 1, each)) as url:
        variables = world.job(MLFLOW_TRACKING_URI=url, MLFLOW_OIDC_AUDIENCE=world.url)
        done = warm.run(["-c", _TRAINING, "replaced", str(enough)], machine.environment(**variables), machine.home)
    assert done.stdout == "True\n", done.stderr
    assert "401" not in done.stderr


def test_a_training_continues_after_its_token_was_revoked(world: World, machine: Laptop):
    """The same happens if the clock of the machine is slow, so that the token expires unexpectedly."""
    enough = machine.home / "enough"
    revoked: list[str] = []

    def each(number: int) -> None:
        if number == 3:
            enough.touch()

    def watched(request: Received) -> Answer:
        [authorization] = request.values("authorization") or [""]
        # Requests with the first two tokens are refused after the third metric.
        if request.target.endswith("log-metric") and authorization not in revoked and len(revoked) < 2:
            counts[authorization] = counts.get(authorization, 0) + 1
            if counts[authorization] == 3:
                revoked.append(authorization)
        if authorization in revoked:
            return 401, [("Content-Type", "application/json")], b"{}"
        return forward(request)

    counts: dict[str, int] = {}
    forward = _short_lived(world, 3_600, each)
    with serving(watched) as url:
        variables = world.job(MLFLOW_TRACKING_URI=url, MLFLOW_OIDC_AUDIENCE=world.url)
        done = warm.run(["-c", _TRAINING, "revoked", str(enough)], machine.environment(**variables), machine.home)
    assert done.stdout == "True\n", done.stderr
    assert len(revoked) == 2


@pytest.mark.slow
def test_a_training_outlives_tokens_of_a_minute(world: World, machine: Laptop):
    """Without a proxy: the tokens really expire. The training ends once it has used three."""
    enough = machine.home / "enough"
    script = _TRAINING.replace("while not enough.exists():", "while len(exchanged()) < 3:").replace(
        "enough = pathlib.Path(sys.argv[2])",
        "from mlflow_serverless_auth.exchange import TokenExchange\n"
        "tokens = set()\n"
        "original = TokenExchange.token\n"
        "def token(self):\n"
        "    tokens.add(original(self))\n"
        "    return original(self)\n"
        "TokenExchange.token = token\n"
        "def exchanged():\n"
        "    return tokens",
    )
    world.github.claims["project_id"] = "42"
    try:
        variables = world.job(MLFLOW_OIDC_AUDIENCE=_GITLAB)
        done = warm.run(["-c", script, "a minute", str(enough)], machine.environment(**variables), machine.home)
    finally:
        del world.github.claims["project_id"]
    assert done.stdout == "True\n", done.stderr


def test_no_secret_is_in_the_log(world: World):
    token = world.github.token(world.url)
    issued = world.exchange(token).json()["access_token"]
    log = world.running.server.process.log_text()
    assert issued not in log and token not in log
    assert not re.search(r"eyJ[\w-]+\.eyJ", log)
