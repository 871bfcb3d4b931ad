"""An account with READ for one registered model can load its versions with the stock client, and
has no access to anything else.

The tests use `serve`, which stores artifacts in a directory, and the functions, which store them in
a bucket.
"""

import base64
import http.client
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import mlflow
import mlflow.artifacts
import mlflow.pyfunc
import pytest
import requests
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from tests.clients.test_users import Deployed
from tests.clients.test_users import deployed as deployed  # noqa: PLC0414
from tests.support.servers import ServerlessMlflow, binary
from tests.users.test_clients import Site
from tests.users.world import ADMIN, PASSWORD, V2, V3

#: All tests run in one process, so that the functions start only once.
pytestmark = pytest.mark.xdist_group("clients of users behind gateways")

_SERVED = "/api/2.0/mlflow-artifacts"
#: The name of a model may contain almost any character.
_NAME = "a model 100%25 ü"


class _Doubling(mlflow.pyfunc.PythonModel):
    def predict(self, model_input: list[float]) -> list[float]:
        return [2 * value for value in model_input]


@dataclass
class World:
    """A server with a run and a logged model of the administrator, and a registered model with
    three versions that use their files.
    """

    url: str
    token: Callable[..., str]
    name: str = ""
    account: str = ""
    experiment: str = ""
    run: str = ""
    logged: str = ""
    #: The locations of the run and of the logged model, below `mlflow-artifacts:/`.
    paths: dict[str, str] = field(default_factory=dict)

    def ask(self, user: str, method: str, path: str, **content) -> requests.Response:
        return requests.request(method, f"{self.url}{path}", auth=(user, PASSWORD), timeout=300, allow_redirects=False, **content)

    def change(self, method: str, path: str, body: dict, created: int = 200) -> dict:
        answer = self.ask(ADMIN, method, path, json=body)
        assert answer.status_code == created, answer.text
        return answer.json()

    def user(self) -> str:
        name = f"u-{uuid.uuid4().hex[:8]}"
        self.change("POST", f"{V2}/users/create", {"username": name, "password": PASSWORD})
        return name

    def grant(self, user: str, kind: str, pattern: str, permission: str) -> None:
        grant = {"username": user, "resource_type": kind, "resource_id": pattern, "permission": permission}
        self.change("POST", f"{V3}/users/permissions/grant", grant)

    def revoke(self, user: str, kind: str, pattern: str) -> None:
        self.change("POST", f"{V3}/users/permissions/revoke", {"username": user, "resource_type": kind, "resource_id": pattern})

    def location(self, user: str, version: str) -> str:
        """Returns the location of a version's files in the response of the server, without the
        scheme.
        """
        query = {"name": self.name, "version": version}
        answer = self.ask(user, "GET", f"{V2}/model-versions/get-download-uri", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["artifact_uri"].removeprefix("mlflow-artifacts:/")

    def as_written(self, user: str, path: str) -> int:
        """Returns the status of a download whose path is sent unchanged. HTTP clients would resolve
        `..`.
        """
        server = urlsplit(self.url)
        connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=300)
        with closing(connection):
            credentials = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
            connection.request("GET", f"{_SERVED}/artifacts/{path}", headers={"authorization": f"Basic {credentials}"})
            return connection.getresponse().status

    def reads(self, user: str, path: str) -> list[int]:
        """Returns the statuses of all requests that read a path: the list, the file, and its
        presigned URL.
        """
        return [
            self.ask(user, "GET", f"{_SERVED}/artifacts", params={"path": path}).status_code,
            self.ask(user, "GET", f"{_SERVED}/artifacts/{quote(path)}/MLmodel").status_code,
            self.ask(user, "GET", f"{_SERVED}/presigned/{quote(path)}/MLmodel").status_code,
        ]


@contextmanager
def _as(monkeypatch: pytest.MonkeyPatch, world: World, user: str = "", token: str = "") -> Iterator[None]:
    """Configures the stock client in this process for a user or a token."""
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        if token:
            patched.setenv("MLFLOW_TRACKING_TOKEN", token)
        else:
            patched.setenv("MLFLOW_TRACKING_USERNAME", user)
            patched.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
        mlflow.set_tracking_uri(world.url)
        yield


def _furnish(world: World, directory: Path) -> None:
    """Creates the versions: 1 is a directory of a run, 2 is a logged model, and 3 refers to its run
    by a `runs:` URI.
    """
    client = MlflowClient()
    # The client puts this name into the sources of versions, where it has to be quoted.
    world.name = f"{_NAME} {uuid.uuid4().hex}"
    world.experiment = client.create_experiment(f"of {world.name}")
    run = client.create_run(world.experiment)
    world.run = run.info.run_id
    mlflow.pyfunc.save_model(directory / "model", python_model=_Doubling(), pip_requirements=[])
    for place in ("model", "model2"):
        client.log_artifacts(world.run, str(directory / "model"), place)
    mlflow.set_experiment(experiment_id=world.experiment)
    logged = mlflow.pyfunc.log_model(name="logged", python_model=_Doubling(), pip_requirements=[])
    world.logged = logged.model_id
    artifacts = client.get_logged_model(world.logged).artifact_location
    world.paths = {"run": run.info.artifact_uri.removeprefix("mlflow-artifacts:/"), "logged": artifacts.removeprefix("mlflow-artifacts:/")}
    client.create_registered_model(world.name)
    client.create_model_version(world.name, f"{run.info.artifact_uri}/model", world.run)
    client.create_model_version(world.name, f"models:/{world.logged}", model_id=world.logged)
    client.create_model_version(world.name, f"runs:/{world.run}/model", world.run)
    for number in ("1", "2"):
        client.set_registered_model_alias(world.name, f"alias{number}", number)
    world.account = world.user()
    world.grant(world.account, "registered_model", world.name, "READ")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("serving")
    site = Site("", directory / "server/data")
    site.command("admin", "create", ADMIN)
    options = ("--auth", "basic", "--no-ui", "--default-permission", "NO_PERMISSIONS")
    server = ServerlessMlflow(directory / "server", options=options, artifact_root="mlflow-artifacts:/")
    try:
        yield World(server.url, lambda user, *options: site.command("token", "create", user, "of a test", *options))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def behind_functions(deployed: Deployed) -> World:
    return World(deployed.users, lambda user, *options: deployed.command("token", "create", user, "of a test", *options))


@pytest.fixture(scope="module", params=["served", "behind_functions"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = request.getfixturevalue(request.param)
    with pytest.MonkeyPatch.context() as patch, _as(patch, world, ADMIN):
        # `set_experiment` changes this variable and the client's state, so both are restored
        # afterwards.
        patch.setenv("MLFLOW_EXPERIMENT_ID", "0")
        patch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
        _furnish(world, tmp_path_factory.mktemp("model"))
    return world


@pytest.mark.parametrize("version", ["1", "2", "3", "latest", "@alias1", "@alias2"])
def test_a_version_is_loaded_with_read_on_its_model_alone(version: str, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    uri = f"models:/{world.name}{version if '@' in version else '/' + version}"
    with _as(monkeypatch, world, world.account):
        assert mlflow.pyfunc.load_model(uri).predict([1.0, 2.5]) == [2.0, 5.0]
        fetched = Path(mlflow.artifacts.download_artifacts(uri, dst_path=str(tmp_path)))
        assert {"MLmodel", "python_model.pkl"} <= {path.name for path in fetched.iterdir()}
        one = Path(mlflow.artifacts.download_artifacts(f"{uri}/MLmodel", dst_path=str(tmp_path / "one")))
        assert one.read_bytes() == (fetched / "MLmodel").read_bytes()


def test_a_token_to_read_suffices_and_one_for_an_experiment_does_not(world: World, monkeypatch: pytest.MonkeyPatch):
    uri = f"models:/{world.name}/1"
    with _as(monkeypatch, world, token=world.token(world.account, "--only", "read")):
        assert mlflow.pyfunc.load_model(uri).predict([1.0]) == [2.0]
    for options in (("--experiment", world.experiment), ("--only", "ingest")):
        with _as(monkeypatch, world, token=world.token(world.account, *options)), pytest.raises(MlflowException, match="403"):
            mlflow.pyfunc.load_model(uri)


def test_those_who_may_read_the_files_elsewhere_are_answered_as_by_stock(world: World):
    reader = world.user()
    world.grant(reader, "registered_model", world.name, "READ")
    world.grant(reader, "experiment", world.experiment, "READ")
    for user in (ADMIN, reader):
        assert [world.location(user, version) for version in "123"] == [
            f"{world.paths['run']}/model",
            world.paths["logged"],
            f"runs:/{world.run}/model",
        ]
    world.grant(reader, "run", "*", "DENY")
    assert [world.run in world.location(reader, version) for version in "123"] == [False] * 3
    assert world.location(reader, "2") == world.paths["logged"]


def test_nothing_else_of_the_experiment_is_reached(world: World):
    account, run, logged = world.account, world.paths["run"], world.paths["logged"]
    for path in (
        "",
        world.experiment,
        f"{world.experiment}/models",
        run,
        f"{run}/model",
        f"{run}/model2",
        logged,
        f"{logged}/..",
    ):
        assert set(world.reads(account, path)) <= {400, 403}, path
    for path, query in [
        (f"{V2}/runs/get", {"run_id": world.run}),
        (f"{V2}/experiments/get", {"experiment_id": world.experiment}),
        (f"{V2}/artifacts/list", {"run_id": world.run}),
        ("/get-artifact", {"run_id": world.run, "path": "model/MLmodel"}),
        (f"{V2}/logged-models/{world.logged}", {}),
        (f"{V2}/logged-models/{world.logged}/artifacts/directories", {}),
    ]:
        assert world.ask(account, "GET", path, params=query).status_code == 403, path


def test_no_path_leads_out_of_the_directory_of_a_version(world: World):
    account, directory = world.account, world.location(world.account, "1")
    assert world.reads(account, directory)[0] == 200
    names = world.ask(account, "GET", f"{_SERVED}/artifacts", params={"path": directory}).json()["files"]
    assert {"MLmodel", "python_model.pkl"} <= {file["path"] for file in names}
    for step in ("..", "%2e%2e", "%252e%252e", "..%2f..", "data/../..", "x/%2e%2e/%2e%2e/model2"):
        for path in (f"{directory}/{step}", f"{directory}/{step}/model2", f"{directory}/{step}/model2/MLmodel"):
            assert set(world.reads(account, path)) <= {400, 403}, path
            assert world.as_written(account, path) in (400, 403), path
    # A sibling whose name begins with that of the version's directory, and other versions and
    # models.
    root, name, _ = directory.split("/")
    for path in (f"{directory}2", f"{directory}/2", f"{root}/{name}/99"):
        assert 200 not in world.reads(account, path) or world.ask(
            account, "GET", f"{_SERVED}/artifacts", params={"path": path}
        ).json() == {}, path
    for path in (root, f"{root}/{name}", f"{root}/bQ/1"):
        assert set(world.reads(account, path)) == {403}, path


def test_the_directory_of_a_version_is_read_only(world: World):
    directory = world.location(world.account, "1")
    for user in (world.account, ADMIN):
        for path in (f"{directory}/MLmodel", "model-versions/x", "model%2dversions/x"):
            parts = {"path": "x", "num_parts": 1, "upload_id": "u", "parts": [{"part_number": 1, "etag": "e"}]}
            statuses = [
                world.ask(user, "PUT", f"{_SERVED}/artifacts/{path}", data=b"x", headers={"content-type": "application/octet-stream"}).status_code,
                world.ask(user, "DELETE", f"{_SERVED}/artifacts/{path}").status_code,
                *(world.ask(user, "POST", f"{_SERVED}/mpu/{step}/{path}", json=parts).status_code for step in ("create", "complete", "abort")),
            ]
            assert statuses == [400] * 5, (user, path)


def test_what_is_revoked_denied_or_deleted_is_loaded_no_longer(world: World):
    directory = {version: world.location(world.account, version) for version in "12"}
    user, denied = world.user(), world.user()
    for name in (user, denied):
        world.grant(name, "registered_model", world.name, "READ")
        assert world.reads(name, directory["1"])[0] == 200
    world.grant(denied, "registered_model_version", "*", "DENY")
    world.revoke(user, "registered_model", world.name)
    for name in (user, denied):
        assert world.reads(name, directory["1"]) == [403] * 3
        query = {"name": world.name, "version": "1"}
        assert world.ask(name, "GET", f"{V2}/model-versions/get-download-uri", params=query).status_code == 403
    made = world.change("POST", f"{V2}/model-versions/create", {"name": world.name, "source": f"models:/{world.name}/2"})["model_version"]
    copy = world.location(world.account, made["version"])
    assert world.reads(world.account, copy)[0] == 200
    world.change("DELETE", f"{V2}/model-versions/delete", {"name": world.name, "version": made["version"]})
    assert world.reads(world.account, copy) == [404] * 3
    assert world.reads(world.account, directory["2"])[0] == 200


def test_no_version_is_made_of_files_that_its_maker_may_not_read(world: World):
    maker, own = world.user(), f"own {uuid.uuid4().hex}"
    world.ask(maker, "POST", f"{V2}/registered-models/create", json={"name": own})
    run, logged = world.paths["run"], world.paths["logged"]
    experiment = world.ask(maker, "POST", f"{V2}/experiments/create", json={"name": own}).json()["experiment_id"]
    own_run = world.ask(maker, "POST", f"{V2}/runs/create", json={"experiment_id": experiment}).json()["run"]["info"]
    mine = own_run["artifact_uri"]
    for source, owner in [
        (f"mlflow-artifacts:/{run}/model", {"run_id": world.run}),
        (f"runs:/{world.run}/model", {"run_id": world.run}),
        (f"models:/{world.logged}", {"model_id": world.logged}),
        (f"models:/{world.name}/1", {}),
        (f"models:/{world.name}@alias1", {}),
        (f"mlflow-artifacts:/{run}/model", {"run_id": own_run["run_id"]}),
        (f"mlflow-artifacts:/{logged}", {"run_id": own_run["run_id"]}),
        (f"{mine}/../../../{run}/model", {"run_id": own_run["run_id"]}),
        (f"{mine}/%2e%2e/%2e%2e/{run}/model", {"run_id": own_run["run_id"]}),
        (f"{mine}/%252e%252e/x", {"run_id": own_run["run_id"]}),
        (f"runs:/{own_run['run_id']}/../../{world.run}/artifacts/model", {"run_id": own_run["run_id"]}),
        (f"mlflow-artifacts:/{world.location(world.account, '1')}", {"run_id": own_run["run_id"]}),
        (f"mlflow-artifacts:/{world.location(world.account, '1')}", {}),
    ]:
        answer = world.ask(maker, "POST", f"{V2}/model-versions/create", json={"name": own, "source": source, **owner})
        assert answer.status_code in (400, 403), (source, owner, answer.text)
    # The creator can use files of their own, so the refusals above are due to the files' owners.
    answer = world.ask(maker, "POST", f"{V2}/model-versions/create", json={"name": own, "source": f"{mine}/x", "run_id": own_run["run_id"]})
    assert answer.status_code == 200, answer.text


def test_a_version_is_that_of_the_workspace_of_the_request(tmp_path: Path) -> None:
    site = Site("", tmp_path / "server/data")
    site.command("admin", "create", ADMIN)
    options = ("--auth", "basic", "--no-ui", "--workspaces")
    server = ServerlessMlflow(tmp_path / "server", options=options, artifact_root="mlflow-artifacts:/")
    try:
        world = World(server.url, site.token, name="m")
        user = world.user()
        teams = ("team-a", "team-b")
        for team in teams:
            world.change("POST", f"{V3}/workspaces", {"name": team}, created=201)
            here = {"headers": {"X-MLFLOW-WORKSPACE": team}}

            def make(path: str, body: dict, here: dict = here) -> dict:
                answer = world.ask(ADMIN, "POST", path, json=body, **here)
                assert answer.status_code == 200, answer.text
                return answer.json()

            experiment = make(f"{V2}/experiments/create", {"name": "e"})["experiment_id"]
            run = make(f"{V2}/runs/create", {"experiment_id": experiment})["run"]["info"]
            path = f"{_SERVED}/artifacts/{run['artifact_uri'].removeprefix('mlflow-artifacts:/')}/model/x"
            octets = {"content-type": "application/octet-stream", **here["headers"]}
            assert world.ask(ADMIN, "PUT", path, data=team.encode(), headers=octets).status_code == 200
            make(f"{V2}/registered-models/create", {"name": "m"})
            make(f"{V2}/model-versions/create", {"name": "m", "source": f"{run['artifact_uri']}/model", "run_id": run["run_id"]})
            if team == "team-a":
                make(f"{V3}/users/permissions/grant", {"username": user, "resource_type": "registered_model", "resource_id": "m", "permission": "READ"})
        for team, status in (("team-a", 200), ("team-b", 403), ("default", 403)):
            answer = world.ask(user, "GET", f"{_SERVED}/artifacts/model-versions/bQ/1/x", headers={"X-MLFLOW-WORKSPACE": team})
            assert (answer.status_code, answer.text == team) == (status, status == 200), (team, answer.text)
    finally:
        server.stop()
