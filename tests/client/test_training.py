"""Tests of training models, logging, and comparing runs."""

import mlflow
import mlflow.sklearn
import numpy
import pytest
from mlflow import MlflowClient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

_SAMPLES = 60


@pytest.fixture
def data() -> tuple[numpy.ndarray, numpy.ndarray]:
    randomness = numpy.random.default_rng(1)
    features = randomness.normal(size=(_SAMPLES, 3))
    return features, (features[:, 0] > 0).astype(int)


@pytest.fixture
def autologging():
    # Logs only artifacts that autologging cannot omit, and no datasets.
    mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)
    yield
    mlflow.sklearn.autolog(disable=True, silent=True)


def test_autologging_records_a_training(client: MlflowClient, experiment: str, data, autologging):
    with mlflow.start_run(experiment_id=experiment) as run:
        LogisticRegression(C=0.5).fit(*data)

    logged = client.get_run(run.info.run_id)
    assert logged.info.status == "FINISHED"
    assert logged.info.end_time >= logged.info.start_time
    assert logged.data.params["C"] == "0.5"
    assert logged.data.metrics["training_score"] > 0.5
    assert logged.data.tags["estimator_name"] == "LogisticRegression"


def test_autologging_records_a_search_as_nested_runs(client: MlflowClient, experiment: str, data, autologging):
    with mlflow.start_run(experiment_id=experiment) as parent:
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1, 10]}, cv=2).fit(*data)

    children = client.search_runs(experiment, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert {child.data.params["C"] for child in children} == {"0.1", "1", "10"}
    assert client.get_run(parent.info.run_id).data.params["best_C"] in {"0.1", "1", "10"}


def test_nested_runs(client: MlflowClient, experiment: str):
    with mlflow.start_run(experiment_id=experiment, run_name="parent") as parent:
        with mlflow.start_run(experiment_id=experiment, run_name="child", nested=True) as child:
            mlflow.log_metric("m", 1)
        mlflow.log_metric("m", 2)

    assert client.get_parent_run(child.info.run_id).info.run_id == parent.info.run_id
    assert client.get_run(child.info.run_id).data.metrics == {"m": 1}
    assert client.get_run(parent.info.run_id).data.metrics == {"m": 2}


def test_a_failing_run_is_marked(client: MlflowClient, experiment: str):
    with pytest.raises(ZeroDivisionError):
        with mlflow.start_run(experiment_id=experiment) as run:
            1 / 0
    assert client.get_run(run.info.run_id).info.status == "FAILED"


def test_a_run_can_be_continued(client: MlflowClient, experiment: str):
    with mlflow.start_run(experiment_id=experiment) as first:
        mlflow.log_metric("m", 1, step=1)
    with mlflow.start_run(run_id=first.info.run_id):
        mlflow.log_metric("m", 2, step=2)

    run = client.get_run(first.info.run_id)
    assert run.info.status == "FINISHED"
    assert [point.value for point in client.get_metric_history(first.info.run_id, "m")] == [1, 2]


def test_logging_in_the_background(client: MlflowClient, experiment: str):
    with mlflow.start_run(experiment_id=experiment) as run:
        for step in range(100):
            mlflow.log_metric("m", step, step=step, synchronous=False)
        mlflow.log_params({"a": 1, "b": 2}, synchronous=False)
        mlflow.set_tags({"c": "3"}, synchronous=False)
        mlflow.flush_async_logging()

    logged = client.get_run(run.info.run_id)
    assert [point.step for point in client.get_metric_history(run.info.run_id, "m")] == list(range(100))
    assert logged.data.params == {"a": "1", "b": "2"}
    assert logged.data.tags["c"] == "3"


def test_the_default_experiment(client: MlflowClient):
    with mlflow.start_run() as run:
        pass
    assert run.info.experiment_id == "0"
    assert client.get_experiment("0").name == "Default"
    assert client.get_run(run.info.run_id).info.experiment_id == "0"


def test_choosing_an_experiment_by_name(client: MlflowClient, tmp_path):
    chosen = mlflow.set_experiment(f"chosen {tmp_path}")
    with mlflow.start_run() as run:
        pass
    assert run.info.experiment_id == chosen.experiment_id
    assert mlflow.set_experiment(f"chosen {tmp_path}").experiment_id == chosen.experiment_id
