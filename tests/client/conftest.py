"""The stock client, pointed at a server of the test's own."""

import os

# Before mlflow is imported anywhere: nothing leaves this machine.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")

from collections.abc import Iterator

import mlflow
import mlflow.tracking.fluent
import pytest
from mlflow import MlflowClient

from tests.client.both import Both
from tests.support.http import Side
from tests.support.servers import start_subject, subject_is_stock_mlflow


#: More than any test has open when it ends or fails. To end a run where there is none does nothing.
_MOST_NESTED_RUNS = 5


def _lifetime(fixture_name: str, config: pytest.Config) -> str:
    """Our server starts in no time, so every test gets one; stock MLflow needs seconds and is shared."""
    return "session" if subject_is_stock_mlflow() else "function"


@pytest.fixture(scope=_lifetime)
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server under test with its data on disk."""
    server = start_subject(tmp_path_factory.mktemp("client") / "server")
    yield server.url
    server.stop()


@pytest.fixture
def forgetful_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything that the client of stock MLflow remembers between calls is reset. A 5xx is never retried."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    yield
    for _ in range(_MOST_NESTED_RUNS):
        mlflow.end_run()


@pytest.fixture
def client(server_url: str, forgetful_client: None) -> MlflowClient:
    """That client, of the server under test."""
    mlflow.set_tracking_uri(server_url)
    return MlflowClient(server_url)


@pytest.fixture
def both(reference: Side, subject: Side, forgetful_client: None, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """That client, of stock MLflow and of the server under test, for programs to be compared."""
    return Both((reference, subject), tmp_path, monkeypatch)


@pytest.fixture
def side(server_url: str) -> Side:
    """The same server without a client, for what a client would not send."""
    return Side("subject", server_url)


@pytest.fixture
def experiment(client: MlflowClient, tmp_path, request: pytest.FixtureRequest) -> str:
    """The id of an experiment of this test's own, with artifacts on this machine."""
    name = f"{request.node.name} {tmp_path}"
    return client.create_experiment(name, artifact_location=(tmp_path / "artifacts").as_uri())


@pytest.fixture
def run_id(client: MlflowClient, experiment: str) -> str:
    """The id of a run in that experiment."""
    return client.create_run(experiment, start_time=1, run_name="the run").info.run_id
