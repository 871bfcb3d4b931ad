"""Tests of searches, pages and reads."""

import math

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

from .pages import pages

_RUNS = 25


@pytest.fixture
def runs(client: MlflowClient, experiment: str) -> list[str]:
    """Creates runs. Run number i has the metric m = i, the param half = i // 2, and a tag if i is
    odd.

    Run i starts at time i + 1, because the client interprets 0 as "now".
    """
    ids = []
    for number in range(_RUNS):
        run = client.create_run(experiment, start_time=number + 1, run_name=f"run {number}")
        tags = [RunTag("odd", "yes")] if number % 2 else []
        client.log_batch(run.info.run_id, [Metric("m", number, 0, 0)], [Param("half", str(number // 2))], tags)
        ids.append(run.info.run_id)
    return ids


def test_search_as_a_data_frame(client: MlflowClient, experiment: str, runs: list[str]):
    found = mlflow.search_runs([experiment], "metrics.m >= 5 AND tags.odd = 'yes'", order_by=["metrics.m DESC"])
    assert list(found["metrics.m"]) == [23, 21, 19, 17, 15, 13, 11, 9, 7, 5]
    assert list(found["run_id"]) == [runs[int(value)] for value in found["metrics.m"]]
    assert set(found["params.half"]) == {str(number // 2) for number in range(5, 24, 2)}


def test_search_by_experiment_name(client: MlflowClient, experiment: str, runs: list[str]):
    name = client.get_experiment(experiment).name
    assert len(mlflow.search_runs(experiment_names=[name])) == _RUNS


@pytest.mark.parametrize("size", [7, _RUNS, *(pytest.param(size, marks=pytest.mark.slow) for size in (1, _RUNS - 1, _RUNS + 1))])
def test_pages_of_runs(client: MlflowClient, experiment: str, runs: list[str], size: int):
    found = list(pages(lambda token: client.search_runs(experiment, max_results=size, page_token=token)))
    assert all(len(page) == size for page in found[:-1])
    assert [run.info.run_id for page in found for run in page] == runs[::-1]


def test_equal_times_are_ordered_by_run_id(client: MlflowClient, experiment: str):
    ids = [client.create_run(experiment, start_time=5).info.run_id for _ in range(12)]
    assert [run.info.run_id for run in client.search_runs(experiment)] == sorted(ids)
    assert [run.info.run_id for run in client.search_runs(experiment, order_by=["run_id DESC"])] == sorted(ids)[::-1]


def test_a_generated_name_is_also_the_tag(client: MlflowClient, experiment: str):
    run = client.create_run(experiment)
    assert run.info.run_name
    assert client.get_run(run.info.run_id).data.tags["mlflow.runName"] == run.info.run_name
    assert client.search_runs(experiment, f"run_name = '{run.info.run_name}'")[0].info.run_id == run.info.run_id


@pytest.mark.parametrize("count", [pytest.param(26_000, id="two"), pytest.param(60_000, id="three", marks=pytest.mark.slow)])
def test_history_over_several_pages_of_the_client(client: MlflowClient, run_id: str, count: int):
    # Fills two or three pages of 25,000 points, which is the page size of the client.
    points = [Metric("m", step / 8, step, step) for step in range(count)]
    for start in range(0, len(points), 1000):
        client.log_batch(run_id, metrics=points[start : start + 1000])
    history = client.get_metric_history(run_id, "m")
    assert [(point.step, point.timestamp, point.value) for point in history] == [
        (point.step, point.timestamp, point.value) for point in points
    ]


def test_special_values(client: MlflowClient, run_id: str):
    for step, value in enumerate([math.nan, math.inf, -math.inf, 5e-324, 1e308, 0.1]):
        client.log_metric(run_id, "m", value, timestamp=step, step=step)
    values = [point.value for point in client.get_metric_history(run_id, "m")]
    assert math.isnan(values[0])
    assert values[1:] == [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 1e308, 0.1]


def test_search_experiments(client: MlflowClient, tmp_path):
    names = [f"{name} {tmp_path}" for name in ("b", "a", "c")]
    ids = [client.create_experiment(name, tags={"number": str(number)}) for number, name in enumerate(names)]
    client.delete_experiment(ids[2])
    mine = f"name LIKE '%{tmp_path}'"

    def found(**arguments) -> list[str]:
        return [experiment.name for experiment in client.search_experiments(filter_string=mine, **arguments)]

    assert found(order_by=["name"]) == sorted(names[:2])
    assert found(view_type=ViewType.DELETED_ONLY) == names[2:]
    assert found(view_type=ViewType.ALL, order_by=["name DESC"]) == sorted(names)[::-1]
    tagged = client.search_experiments(filter_string=f"tags.number = '1' AND {mine}")
    assert [experiment.experiment_id for experiment in tagged] == [ids[1]]
    assert tagged[0].tags == {"number": "1"}


def test_deleting_and_restoring_a_run(client: MlflowClient, experiment: str, run_id: str):
    client.delete_run(run_id)
    assert client.get_run(run_id).info.lifecycle_stage == "deleted"
    assert not client.search_runs(experiment)
    assert len(client.search_runs(experiment, run_view_type=ViewType.DELETED_ONLY)) == 1
    with pytest.raises(MlflowException, match="must be in the 'active' state"):
        client.log_metric(run_id, "m", 1)
    client.restore_run(run_id)
    client.log_metric(run_id, "m", 1)
    assert client.search_runs(experiment)[0].data.metrics == {"m": 1}


def test_deleting_and_restoring_an_experiment(client: MlflowClient, experiment: str, run_id: str):
    client.delete_experiment(experiment)
    assert client.get_experiment(experiment).lifecycle_stage == "deleted"
    assert client.get_run(run_id).info.lifecycle_stage == "deleted"
    with pytest.raises(MlflowException, match="must be in the 'active' state"):
        client.create_run(experiment)
    client.restore_experiment(experiment)
    assert client.search_runs(experiment)[0].info.run_id == run_id


def test_renaming(client: MlflowClient, experiment: str, run_id: str, tmp_path):
    client.rename_experiment(experiment, f"renamed {tmp_path}")
    assert client.get_experiment_by_name(f"renamed {tmp_path}").experiment_id == experiment
    client.update_run(run_id, name="renamed", status="FAILED")
    run = client.get_run(run_id)
    assert (run.info.run_name, run.info.status) == ("renamed", "FAILED")


def test_tags(client: MlflowClient, experiment: str, run_id: str):
    client.set_tag(run_id, "a/b", "1")
    client.set_tag(run_id, "a/b", "2")
    client.set_experiment_tag(experiment, "c", "3")
    assert client.get_run(run_id).data.tags["a/b"] == "2"
    assert client.get_experiment(experiment).tags["c"] == "3"
    client.delete_tag(run_id, "a/b")
    client.delete_experiment_tag(experiment, "c")
    assert "a/b" not in client.get_run(run_id).data.tags
    assert "c" not in client.get_experiment(experiment).tags


def test_params_are_written_once(client: MlflowClient, run_id: str):
    client.log_param(run_id, "p", "1")
    client.log_param(run_id, "p", "1")
    with pytest.raises(MlflowException, match="Changing param values is not allowed"):
        client.log_param(run_id, "p", "2")
    assert client.get_run(run_id).data.params == {"p": "1"}


def test_missing_things(client: MlflowClient):
    with pytest.raises(MlflowException, match="Run with id=0123456789abcdef0123456789abcdef not found"):
        client.get_run("0123456789abcdef0123456789abcdef")
    with pytest.raises(MlflowException, match="No Experiment with id=987654321 exists"):
        client.get_experiment("987654321")
    assert client.get_experiment_by_name("there is no such name") is None
