"""Fixtures with the stock client and a server for each test."""

import os

# Set before mlflow is imported anywhere, so that no telemetry is sent.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")

from collections.abc import Iterator

import mlflow
import mlflow.tracking.fluent
import pytest
from mlflow import MlflowClient

from tests.client.both import Both
from tests.support.http import Side
from tests.support.servers import start_subject, subject_is_stock_mlflow


#: More than any test has active when it ends or fails. Ending a run when there is none has no
#: effect.
_MOST_NESTED_RUNS = 5


def _lifetime(fixture_name: str, config: pytest.Config) -> str:
    """Returns the scope of the fixture. The server of this project starts quickly, so every test
    gets its own. Stock MLflow takes seconds and is shared.
    """
    return "session" if subject_is_stock_mlflow() else "function"


@pytest.fixture(scope=_lifetime)
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the URL of the server under test, with its data on disk."""
    server = start_subject(tmp_path_factory.mktemp("client") / "server")
    yield server.url
    server.stop()


@pytest.fixture
def forgetful_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Resets all state that the stock client keeps between calls. Disables retries of a 5xx."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    yield
    for _ in range(_MOST_NESTED_RUNS):
        mlflow.end_run()


@pytest.fixture
def client(server_url: str, forgetful_client: None) -> MlflowClient:
    """Returns a stock client for the server under test."""
    mlflow.set_tracking_uri(server_url)
    return MlflowClient(server_url)


@pytest.fixture
def both(reference: Side, subject: Side, forgetful_client: None, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Returns both servers with a stock client, for comparing programs."""
    return Both((reference, subject), tmp_path, monkeypatch)


@pytest.fixture
def side(server_url: str) -> Side:
    """Returns the server under test without a client, for requests that a client would not send."""
    return Side("subject", server_url)


@pytest.fixture
def experiment(client: MlflowClient, tmp_path, request: pytest.FixtureRequest) -> str:
    """Returns the id of a new experiment whose artifacts are in a local directory."""
    name = f"{request.node.name} {tmp_path}"
    return client.create_experiment(name, artifact_location=(tmp_path / "artifacts").as_uri())


@pytest.fixture
def run_id(client: MlflowClient, experiment: str) -> str:
    """Returns the id of a run in the experiment."""
    return client.create_run(experiment, start_time=1, run_name="the run").info.run_id
