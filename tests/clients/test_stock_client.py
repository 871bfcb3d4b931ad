"""Tests stock MLflow's client with this server behind a strict gateway, signed by this package and
by the one that MLflow recommends.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

import mlflow
import mlflow.tracking.fluent
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.tracking.request_auth.registry import fetch_auth
from mlflow_serverless_auth.provider import MlflowServerlessAuthProvider

from tests.support import warm
from tests.support.http_server import serving
from tests.support.processes import child_environment
from tests.support.servers import start_subject

from .conftest import REGION, VERIFIER
from .gateway import forwarding, strict

_AWKWARD_NAMES = ["with spaces", "a+b", "größer 🎉", "100% %2B", "a & b = c", "#?;,'\"", "~-_.!*()"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the URL of the gateway with a server behind it."""
    server = start_subject(tmp_path_factory.mktemp("clients"), in_memory=True)
    with serving(strict(VERIFIER, forwarding(server.url))) as url:
        yield url
    server.stop()


@pytest.fixture
def connect(aws: None, gateway: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], MlflowClient]:
    """Returns a function that creates a client, with signing enabled by one of MLflow's
    variables.
    """

    def connect(variable: str, value: str) -> MlflowClient:
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setenv(variable, value)
        return MlflowClient(gateway)

    return connect


@pytest.fixture
def client(connect: Callable[[str, str], MlflowClient]) -> MlflowClient:
    """Returns a client that signs with this package."""
    return connect("MLFLOW_TRACKING_AUTH", "mlflow-serverless")


@pytest.fixture
def stock_signing(connect: Callable[[str, str], MlflowClient]) -> MlflowClient:
    """Returns a client that signs with `requests_auth_aws_sigv4`, like stock MLflow."""
    return connect("MLFLOW_TRACKING_AWS_SIGV4", "true")


def _new_run(client: MlflowClient, name: str) -> str:
    return client.create_run(client.create_experiment(name), run_name="run").info.run_id


def test_mlflow_finds_the_package_by_its_entry_point():
    [entry_point] = entry_points(group="mlflow.request_auth_provider", name="mlflow-serverless")
    assert entry_point.load() is MlflowServerlessAuthProvider
    assert fetch_auth("mlflow-serverless") is fetch_auth("mlflow-serverless")


def test_without_a_signature_nothing_gets_through(gateway: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(MlflowException, match="Forbidden"):
        MlflowClient(gateway).search_experiments()


@pytest.mark.parametrize("name", _AWKWARD_NAMES)
def test_experiments_by_awkward_names(client: MlflowClient, name: str):
    experiment = client.create_experiment(name)
    assert client.get_experiment_by_name(name).experiment_id == experiment
    assert client.get_experiment_by_name(f"{name} ") is None


@pytest.mark.parametrize("name", _AWKWARD_NAMES)
def test_histories_of_awkward_metrics(client: MlflowClient, name: str):
    """Reads metrics back by their names. The names are simplified, because the client refuses most
    of the originals for metrics.
    """
    key = "".join(character if character.isalnum() or character in "_-. /" else "_" for character in name) + "/a b"
    run = _new_run(client, f"metric {name}")
    client.log_metric(run, key, 0.5)
    assert [metric.value for metric in client.get_metric_history(run, key)] == [0.5]


@pytest.mark.parametrize("name", [name for name in _AWKWARD_NAMES if "/" not in name and ":" not in name])
def test_models_by_awkward_names(client: MlflowClient, name: str):
    client.create_registered_model(name)
    client.set_registered_model_tag(name, "stage", "a + b")
    assert client.get_registered_model(name).tags == {"stage": "a + b"}
    assert [model.name for model in client.search_registered_models("tags.stage = 'a + b'")].count(name) == 1
    client.delete_registered_model(name)


def test_two_orders_and_a_filter_in_a_query(client: MlflowClient):
    for name in ("b 1", "a 1", "a 2", "c 1"):
        client.create_registered_model(name, {"group": "two orders"})
    query = {"filter_string": "name LIKE '% 1' AND tags.group = 'two orders'", "max_results": 2}
    orders = [["name DESC", "last_updated_timestamp ASC"], ["last_updated_timestamp DESC", "name ASC"]]
    first, second = (client.search_registered_models(**query, order_by=order) for order in orders)
    assert [model.name for model in first] == ["c 1", "b 1"]
    assert [model.name for model in second] == ["c 1", "a 1"]
    rest = client.search_registered_models(**query, order_by=orders[0], page_token=first.token)
    assert [model.name for model in rest] == ["a 1"]


def test_a_training_script(client: MlflowClient, gateway: str, tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Logs params, metrics and tags, and searches, with the fluent API."""
    script = """
import mlflow
mlflow.create_experiment("a training + script", artifact_location="s3://bucket/x")
mlflow.set_experiment("a training + script")
with mlflow.start_run(run_name="one + two", tags={"stage": "demo day"}) as run:
    mlflow.log_params({"optimizer": "adam %", "rate": 0.1})
    mlflow.log_metrics({"loss a/b": 0.5})
found = mlflow.search_runs(filter_string="tags.stage = 'demo day' AND params.optimizer LIKE '%m %'")
print(list(found["run_id"]) == [run.info.run_id])
print([point.value for point in mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss a/b")])
"""
    environment = child_environment(
        MLFLOW_TRACKING_URI=gateway,
        MLFLOW_TRACKING_AUTH="mlflow-serverless",
        MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true",
    )
    process = warm.run(["-c", script], environment, tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split("\n") == ["True", "[0.5]", ""]


def test_credentials_that_are_missing_are_told_in_a_sentence(gateway: str, tmp_path):
    environment = child_environment(MLFLOW_TRACKING_AUTH="mlflow-serverless", AWS_REGION=REGION)
    process = warm.run(["-c", f"import mlflow; mlflow.MlflowClient({gateway!r}).search_experiments()"], environment, tmp_path)
    assert "There are no AWS credentials to sign the request with. Set AWS_PROFILE" in process.stderr


def test_stock_signing_works_for_simple_queries(stock_signing: MlflowClient):
    """Checks that simple queries succeed, so that the failures below are due to their queries and
    not to the gateway.
    """
    experiment = stock_signing.create_experiment("simple")
    assert stock_signing.get_experiment_by_name("simple").experiment_id == experiment
    assert stock_signing.get_experiment(experiment).name == "simple"


def test_stock_signing_fails_at_spaces(stock_signing: MlflowClient):
    with pytest.raises(MlflowException, match="Forbidden"):
        stock_signing.get_experiment_by_name("with spaces")


def test_stock_signing_fails_at_two_orders(stock_signing: MlflowClient):
    assert stock_signing.search_model_versions("name='x'", order_by=["name"]) == []
    with pytest.raises(MlflowException, match="Forbidden"):
        stock_signing.search_model_versions("name='x'", order_by=["name", "version_number"])


def test_stock_signing_fails_at_every_search_of_models(stock_signing: MlflowClient):
    """Checks that searches fail, because MLflow adds a filter with spaces, which excludes prompts.
    """
    with pytest.raises(MlflowException, match="Forbidden"):
        stock_signing.search_registered_models()
