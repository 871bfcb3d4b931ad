"""Tests of full autologging: models, their metrics, and the datasets used for training and
evaluation.
"""

import lightgbm
import mlflow
import mlflow.lightgbm
import mlflow.sklearn
import pandas
import pytest
from mlflow import MlflowClient
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    return train_test_split(data.data, data.target, test_size=0.3, random_state=1)


@pytest.fixture
def everything_logged():
    mlflow.sklearn.autolog(silent=True)
    mlflow.lightgbm.autolog(silent=True)
    yield
    mlflow.sklearn.autolog(disable=True, silent=True)
    mlflow.lightgbm.autolog(disable=True, silent=True)


def _train_sklearn(iris, c: float) -> str:
    train, test, train_labels, test_labels = iris
    model = LogisticRegression(C=c, max_iter=200).fit(train, train_labels)
    model_id = mlflow.last_logged_model().model_id
    evaluation = mlflow.data.from_pandas(pandas.concat([test, test_labels], axis=1), name="held out", targets="target")
    mlflow.log_input(evaluation, context="evaluation")
    accuracy = accuracy_score(test_labels, model.predict(test))
    mlflow.log_metric("held_out_accuracy", accuracy, model_id=model_id, dataset=evaluation)
    return model_id


@pytest.mark.slow
def test_scikit_learn_with_everything_logged(client: MlflowClient, experiment: str, iris, everything_logged):
    model_ids = {}
    for c in (0.001, 0.1, 10.0):
        with mlflow.start_run(experiment_id=experiment) as run:
            model_ids[c] = _train_sklearn(iris, c)
            client.set_logged_model_tags(model_ids[c], {"stage": "candidate" if c > 1 else "try"})

    logged = client.get_run(run.info.run_id)
    assert [output.model_id for output in logged.outputs.model_outputs] == [model_ids[10.0]]
    inputs = {entry.dataset.name: entry for entry in logged.inputs.dataset_inputs}
    contexts = {tag.value for entry in logged.inputs.dataset_inputs for tag in entry.tags}
    assert contexts >= {"train", "evaluation"}
    assert "mlflow_colspec" in inputs["held out"].dataset.schema
    assert inputs["held out"].dataset.profile

    model = mlflow.get_logged_model(model_ids[10.0])
    assert model.status == "READY" and model.source_run_id == run.info.run_id
    assert model.params["C"] == "10.0"
    assert {metric.key for metric in model.metrics} >= {"training_accuracy_score", "held_out_accuracy"}

    # By metric on a dataset, by param, by tag, with orders and pages.
    digest = inputs["held out"].dataset.digest
    held_out = [{"dataset_name": "held out", "dataset_digest": digest}]
    by_accuracy = [{"field_name": "metrics.held_out_accuracy", "ascending": False, **held_out[0]}]
    accuracy = {
        c: next(m.value for m in mlflow.get_logged_model(i).metrics if m.key == "held_out_accuracy")
        for c, i in model_ids.items()
    }
    assert accuracy[0.001] < accuracy[10.0]

    def found(filter_string: str | None = None, datasets=None, **more) -> list[str]:
        models = client.search_logged_models([experiment], filter_string=filter_string, datasets=datasets, **more)
        return [model.model_id for model in models]

    floor = accuracy[0.1] - 0.001
    assert set(found(f"metrics.held_out_accuracy > {floor}", held_out)) == {model_ids[0.1], model_ids[10.0]}
    assert found("metrics.held_out_accuracy > 0", [{"dataset_name": "held out", "dataset_digest": "other"}]) == []
    assert found("params.C = '0.1'") == [model_ids[0.1]]
    assert found("tags.stage = 'candidate'") == [model_ids[10.0]]
    assert found("tags.stage = 'try' AND params.C = '10.0'") == []
    assert found(order_by=by_accuracy)[-1] == model_ids[0.001]
    assert found() == [model_ids[10.0], model_ids[0.1], model_ids[0.001]]

    first = client.search_logged_models([experiment], order_by=by_accuracy, max_results=2)
    second = client.search_logged_models([experiment], order_by=by_accuracy, max_results=2, page_token=first.token)
    assert [model.model_id for model in [*first, *second]] == found(order_by=by_accuracy) and not second.token

    # The logged model can be loaded from its artifact location.
    loaded = mlflow.sklearn.load_model(model.model_uri)
    assert accuracy_score(iris[3], loaded.predict(iris[1])) == accuracy[10.0]


@pytest.mark.slow
def test_lightgbm_with_everything_logged(client: MlflowClient, experiment: str, iris, everything_logged):
    train, test, train_labels, test_labels = iris
    with mlflow.start_run(experiment_id=experiment) as run:
        sets = lightgbm.Dataset(train, train_labels), lightgbm.Dataset(test, test_labels)
        params = {"objective": "multiclass", "num_class": 3, "metric": "multi_logloss", "verbose": -1}
        booster = lightgbm.train(params, sets[0], num_boost_round=12, valid_sets=[sets[1]], valid_names=["held_out"])

    logged = client.get_run(run.info.run_id)
    history = client.get_metric_history(run.info.run_id, "held_out-multi_logloss")
    assert [point.step for point in history] == list(range(12))
    assert logged.data.params["num_boost_round"] == "12"
    assert {tag.value for entry in logged.inputs.dataset_inputs for tag in entry.tags} >= {"train"}
    [output] = logged.outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    points = [point for point in model.metrics if point.key == "held_out-multi_logloss"]
    assert sorted(point.step for point in points) == list(range(12))
    found = client.search_logged_models([experiment], filter_string="metrics.`held_out-multi_logloss` < 1000")
    assert [model.model_id for model in found] == [output.model_id]
    loaded = mlflow.lightgbm.load_model(model.model_uri)
    assert (loaded.predict(test) == booster.predict(test)).all()


def test_runs_are_found_by_their_datasets(client: MlflowClient, experiment: str):
    frame = pandas.DataFrame({"a": [1, 2], "b": [3.0, 4.0]})
    for name, context in (("first", "train"), ("first", "eval"), ("second", "train")):
        with mlflow.start_run(experiment_id=experiment, run_name=f"{name} {context}"):
            mlflow.log_input(mlflow.data.from_pandas(frame, name=name), context=context)

    def found(filter_string: str) -> set[str]:
        return {run.info.run_name for run in client.search_runs(experiment, filter_string)}

    assert found("dataset.name = 'first'") == {"first train", "first eval"}
    assert found("dataset.context = 'train'") == {"first train", "second train"}
    assert found("dataset.name = 'first' AND dataset.context = 'eval'") == {"first eval"}
    assert found("dataset.name LIKE '%con%'") == {"second train"}
    [run] = client.search_runs(experiment, "dataset.name = 'second'")
    [entry] = run.inputs.dataset_inputs
    assert mlflow.data.get_source(entry) is not None and '"num_rows": 2' in entry.dataset.profile
