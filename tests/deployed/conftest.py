"""The deployment that all tests of this directory share: the emulator, the stack with both APIs,
and a gateway in front of each API.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import mlflow
import pytest
from mlflow.tracking.request_auth import registry
from mlflow_serverless_auth.signer import SigV4

from tests.support.http_server import serving

from .emulator import Emulator, start_emulator
from .front import Caller, serving_api
from .stack import Failed, Stack, deploy_by_command, fail, lay_out, unpack
from .webhooks import RECEIVERS
from .wire import Wire

#: MLflow's user interface, from the installed client.
_UI = Path(find_spec("mlflow").origin).parent / "server/js/build"
#: Archive of a release to deploy, instead of development builds.
_ARCHIVE = os.environ.get("DEPLOYED_ARCHIVE")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Makes one process run all tests of the deployment, so that there is only one deployment."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("deployed"))


@dataclass(frozen=True)
class Account:
    """The emulator, the recorded requests, and a project directory for `sam deploy`."""

    emulator: Emulator
    wire: Wire
    directory: Path
    #: URL of the bucket's server.
    s3: str


@dataclass(frozen=True)
class Deployment:
    """A stack deployed like with `make deploy`, and the URLs of the gateways in front
    of its APIs.
    """

    account: Account
    stack: Stack
    #: Output of the deployment command.
    said: str
    caller: Caller
    signed: str
    users: str


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("deployed")
    wire = Wire()
    with ExitStack() as stops:
        surroundings = {
            **RECEIVERS,
            "DYNAMODB_ENDPOINT": stops.enter_context(serving(wire.dynamodb)),
            "AWS_ENDPOINT_URL_LAMBDA": stops.enter_context(serving(wire.functions)),
            "AWS_ENDPOINT_URL_SSM": stops.enter_context(serving(wire.parameters)),
            "AWS_ENDPOINT_URL_S3": stops.enter_context(serving(wire.s3)),
            # The emulator does not mount layers for functions with a custom runtime.
            "UI_DIRECTORY": str(_UI),
        }
        emulator = start_emulator(directory, surroundings)
        stops.callback(emulator.process.stop)
        wire.url = emulator.url
        project = directory / "project"
        project.mkdir()
        laid_out = unpack(Path(_ARCHIVE).resolve(), project) if _ARCHIVE else lay_out(project, _UI)
        yield Account(emulator, wire, laid_out, surroundings["AWS_ENDPOINT_URL_S3"])


@pytest.fixture(scope="session")
def failed(account: Account) -> Failed:
    """The first attempt to create the stack, which fails at the alarm of the indexer, after tables
    and functions have been created.
    """
    return fail(account.emulator, account.directory, "mlflow", "IndexerLag")


@pytest.fixture(scope="session")
def deployment(account: Account, failed: Failed) -> Iterator[Deployment]:
    done = deploy_by_command(account.emulator, account.directory)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    stack = Stack(account.emulator, "mlflow")
    caller = trainer(account.emulator, "trainer")
    with ExitStack() as stops:
        urls = {name: stops.enter_context(serving_api(account.emulator, api, caller)) for name, api in stack.apis().items()}
        yield Deployment(account, stack, done.stdout, caller, urls["Api"], urls["UsersApi"])


@pytest.fixture
def sign(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Makes this process sign requests, with the credentials in its environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_TRACKING_AUTH", "mlflow-serverless")
    # Removes variables that earlier tests may have set.
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    # MLflow has one signer per process, which caches the credentials and sets these variables.
    [provider] = [one for one in registry._request_auth_provider_registry if one.get_name() == "mlflow-serverless"]
    monkeypatch.setattr(provider, "_auth", SigV4())
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "4500000")
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "true")
    return monkeypatch


@pytest.fixture
def signing(deployment: Deployment, sign: pytest.MonkeyPatch) -> Deployment:
    """Signs as the caller that the gateway accepts."""
    for name, value in deployment.caller.environment.items():
        sign.setenv(name, value)
    return deployment


def trainer(emulator: Emulator, name: str) -> Caller:
    """Creates an IAM user with access keys, who represents a client."""
    emulator.iam.create_user(UserName=name)
    key = emulator.iam.create_access_key(UserName=name)["AccessKey"]
    return Caller(name, key["AccessKeyId"], key["SecretAccessKey"])
