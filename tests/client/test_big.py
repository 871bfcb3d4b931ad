"""Wide and large data. BIG_SHARE=0.1 reduces all sizes by a factor of ten, for a slower server or a
quick check.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, ViewType

from tests.support.http import Request, Side
from tests.support.servers import subject_is_stock_mlflow

pytestmark = [pytest.mark.big, pytest.mark.slow]

_SHARE = float(os.environ.get("BIG_SHARE", "1"))
_METRICS_PER_BATCH = 1000
_PARAMS_PER_BATCH = 100
_WRITERS = 8
#: Number of points of a metric with a short name that fit into one response of this project's
#: server.
_WHOLE_HISTORY = 500_000


def _scaled(count: int) -> int:
    return max(1, int(count * _SHARE))


def _log(client: MlflowClient, run_id: str, points: list[Metric]) -> None:
    for start in range(0, len(points), _METRICS_PER_BATCH):
        client.log_batch(run_id, metrics=points[start : start + _METRICS_PER_BATCH])


def test_many_metric_keys(client: MlflowClient, experiment: str, run_id: str):
    count = _scaled(2_000)
    _log(client, run_id, [Metric(f"m{number}", number, 1, 0) for number in range(count)])
    expected = {f"m{number}": number for number in range(count)}
    assert client.get_run(run_id).data.metrics == expected
    assert client.search_runs(experiment)[0].data.metrics == expected
    assert client.search_runs(experiment, f"metrics.m{count - 1} = {count - 1}")[0].info.run_id == run_id


def test_many_long_params(client: MlflowClient, experiment: str, run_id: str):
    expected = {f"p{number}": f"{number:04}" * 1500 for number in range(_scaled(2_000))}
    params = [Param(key, value) for key, value in expected.items()]
    for start in range(0, len(params), _PARAMS_PER_BATCH):
        client.log_batch(run_id, params=params[start : start + _PARAMS_PER_BATCH])
    assert client.get_run(run_id).data.params == expected
    assert client.search_runs(experiment)[0].data.params == expected


def test_many_metrics_with_many_steps(client: MlflowClient, run_id: str):
    keys, steps = [f"m{number}" for number in range(_scaled(1_500))], 150
    _log(client, run_id, [Metric(key, step, step, step) for step in range(steps) for key in keys])
    assert client.get_run(run_id).data.metrics == dict.fromkeys(keys, steps - 1)
    for key in keys[:: len(keys) // 10 or 1]:
        assert [point.value for point in client.get_metric_history(run_id, key)] == list(range(steps))


def test_a_long_history(client: MlflowClient, side: Side, run_id: str):
    count = _scaled(1_000_000)
    for start in range(0, count, _METRICS_PER_BATCH):
        points = range(start, min(start + _METRICS_PER_BATCH, count))
        client.log_batch(run_id, metrics=[Metric("m", step, step, step) for step in points])
    assert client.get_run(run_id).data.metrics == {"m": count - 1}
    # The client always requests pages. Without max_results, the response has all points, or is an
    # error.
    whole = side.send(Request("GET", "/api/2.0/mlflow/metrics/get-history", {"run_id": run_id, "metric_key": "m"}))
    if count <= _WHOLE_HISTORY or subject_is_stock_mlflow():
        assert [point["value"] for point in whole.body["metrics"]] == list(range(count))
        assert "next_page_token" not in whole.body
    else:
        assert whole.status == 400
        assert "max_results" in whole.body["message"]
    assert [point.value for point in client.get_metric_history(run_id, "m")] == list(range(count))


def test_deleting_and_restoring_an_experiment_of_many_runs(client: MlflowClient, experiment: str):
    count = _scaled(10_000)
    with ThreadPoolExecutor(_WRITERS) as threads:
        created = threads.map(lambda number: client.create_run(experiment, start_time=number), range(1, count + 1))
        ids = [run.info.run_id for run in created]

    # Only measured on this project's server, because stock MLflow rewrites every run of the
    # experiment.
    if not subject_is_stock_mlflow():
        of_one_run = client.create_experiment(f"one run {experiment}")
        client.create_run(of_one_run)
        assert _fastest_change(client, experiment) < 3 * _fastest_change(client, of_one_run)

    client.delete_experiment(experiment)
    assert {client.get_run(run_id).info.lifecycle_stage for run_id in (ids[0], ids[-1])} == {"deleted"}
    assert not client.search_runs(experiment, max_results=10)
    assert len(client.search_runs(experiment, run_view_type=ViewType.DELETED_ONLY, max_results=10)) == min(10, count)
    with pytest.raises(Exception, match="must be in the 'active' state"):
        client.log_metric(ids[-1], "m", 1)

    client.restore_experiment(experiment)
    assert {client.get_run(run_id).info.lifecycle_stage for run_id in (ids[0], ids[-1])} == {"active"}
    assert not client.search_runs(experiment, run_view_type=ViewType.DELETED_ONLY, max_results=10)
    client.log_metric(ids[-1], "m", 1)
    assert client.search_runs(experiment, "metrics.m = 1")[0].info.run_id == ids[-1]


def _fastest_change(client: MlflowClient, experiment: str) -> float:
    """Returns the seconds that deleting and restoring an experiment takes. The minimum of several
    attempts, because other programs may use the processor.
    """

    def change() -> float:
        start = time.monotonic()
        client.delete_experiment(experiment)
        client.restore_experiment(experiment)
        return time.monotonic() - start

    return min(change() for _ in range(5))
