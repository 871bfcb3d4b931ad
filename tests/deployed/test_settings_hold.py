"""Tests settings in a deployed stack: an operator sets them with the program, and the stack applies
them on its own.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
from mlflow import MlflowClient
from mlflow_serverless_auth import SigV4

from .conftest import Deployment
from .rare import housekeeping
from .steps import command, marked, wait_for

#: Number of hours in which the housekeeper visits each experiment once.
_HOURS = 24
_POINTS = 40


@pytest.mark.slow
def test_settings_hold(signing: Deployment, subtests: pytest.Subtests) -> None:
    with subtests.test("metric-retention"):
        _histories_go(signing)
    with subtests.test("trace-retention"):
        _traces_are_hidden(signing)
    with subtests.test("indexed-values"):
        _values_are_no_longer_indexed(signing)
    with subtests.test("indexed-texts of one experiment"):
        _texts_of_one_experiment_are_indexed(signing)
    assert signing.account.wire.denied == []


@contextmanager
def _set(world: Deployment, setting: str, *values: str) -> Iterator[None]:
    command(world, "config", "set", setting, *values, "--yes")
    shown = command(world, "config", "show").stdout
    assert any(line.split()[:2] == [setting, "server"] and line.split()[2:] == list(values) for line in shown.splitlines()), shown
    try:
        yield
    finally:
        command(world, "config", "unset", setting, "--yes")


def _histories_go(world: Deployment) -> None:
    client = MlflowClient(world.signed)
    while True:
        begun = _hour()
        # Creates experiments until one is visited in the current hour.
        experiment = client.create_experiment(f"histories {time.time_ns()}")
        while int(experiment) % _HOURS != begun % _HOURS:
            experiment = client.create_experiment(f"histories {time.time_ns()}")
        runs = [_ended_run(client, experiment, end) for end in (20_000, int(time.time() * 1000))]
        wait_for(lambda experiment=experiment: marked(world.stack, experiment) == 0, "index of the runs")
        assert housekeeping(world) == {"is_done": True}
        lengths = [len(client.get_metric_history(run, "loss")) for run in runs]
        assert lengths == [_POINTS, _POINTS], "without a setting, all points must be kept"
        with _set(world, "metric-retention", "1d"):
            assert housekeeping(world) == {"is_done": True}
        if _hour() == begun:
            break
    old, new = (client.get_metric_history(run, "loss") for run in runs)
    assert len(new) == _POINTS
    assert len(old) < 10 and max(point.step for point in old) == _POINTS - 1
    assert client.get_run(runs[0]).data.metrics == {"loss": _POINTS - 1}


def _ended_run(client: MlflowClient, experiment: str, end: int) -> str:
    run = client.create_run(experiment, start_time=1).info.run_id
    points = [{"key": "loss", "value": step, "timestamp": 1_000 + step, "step": step} for step in range(_POINTS)]
    body = {"run_id": run, "metrics": points}
    url = f"{client.tracking_uri}/api/2.0/mlflow/runs/log-batch"
    requests.post(url, json=body, auth=SigV4(), timeout=300).raise_for_status()
    client.set_terminated(run, end_time=end)
    return run


def _hour() -> int:
    return int(time.time()) // 3600


def _traces_are_hidden(world: Deployment) -> None:
    url, trace = f"{world.signed}/api/3.0/mlflow/traces", f"tr-{time.time_ns():032x}"
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    info = {"trace_id": trace, "trace_location": place, "request_time": "2023-11-14T22:13:20Z", "state": "OK"}
    requests.post(url, json={"trace": {"trace_info": info}}, auth=SigV4(), timeout=300).raise_for_status()

    def status() -> int:
        return requests.get(f"{url}/{trace}", auth=SigV4(), timeout=300).status_code

    assert status() == 200
    with _set(world, "trace-retention", "30d"):
        wait_for(lambda: status() == 404, "hidden trace")


def _values_are_no_longer_indexed(world: Deployment) -> None:
    """Checks a new run, because existing runs are only affected when they are indexed again."""
    client = MlflowClient(world.signed)

    def of_new_run() -> int:
        experiment = client.create_experiment(f"values {time.time_ns()}")
        run = client.create_run(experiment, tags={"colour": "green"}).info.run_id
        client.set_terminated(run)
        wait_for(lambda: marked(world.stack, experiment) == 0, "index of the run")
        assert [found.info.run_id for found in client.search_runs([experiment], "tags.colour = 'green'")] == [run]
        return _entries(world, experiment, "tags.colour")

    assert of_new_run() > 0
    with _set(world, "indexed-values", "tags.*", "!tags.colour"):
        wait_for(lambda: of_new_run() == 0, "new run without an entry")


def _texts_of_one_experiment_are_indexed(world: Deployment) -> None:
    client = MlflowClient(world.signed)
    experiments = [client.create_experiment(f"texts {time.time_ns()}") for _ in range(2)]
    runs = {}
    for experiment in experiments:
        runs[experiment] = client.create_run(experiment, tags={"note": "a very long walk"}).info.run_id
        client.set_terminated(runs[experiment])
    wait_for(lambda: all(marked(world.stack, experiment) == 0 for experiment in experiments), "index of the runs")
    before = [_entries(world, experiment, "tags.note") for experiment in experiments]
    assert before == [1, 1], "only the whole value must be indexed"
    command(world, "config", "set", "indexed-texts", "tags.note", "--experiment", experiments[0], "--yes")
    try:
        shown = command(world, "config", "show").stdout
        assert ["indexed-texts", "experiment", experiments[0], "tags.note"] in [line.split() for line in shown.splitlines()], shown
        of_one, of_other = (_entries(world, experiment, "tags.note") for experiment in experiments)
        assert of_one > 3 and of_other == 1
        found = client.search_runs(experiments, "tags.note LIKE '%long%'")
        assert {run.info.run_id for run in found} == set(runs.values())
    finally:
        command(world, "config", "unset", "indexed-texts", "--experiment", experiments[0], "--yes")
    assert [_entries(world, experiment, "tags.note") for experiment in experiments] == before


def _entries(world: Deployment, experiment: str, field: str) -> int:
    """Returns the number of index entries of a text or a value in this experiment."""
    scanned = world.account.emulator.dynamodb.get_paginator("scan").paginate(
        TableName=world.stack.outputs["TableName"],
        FilterExpression="begins_with(PK, :index) AND contains(PK, :field)",
        ExpressionAttributeValues={":index": {"S": f"IX#{experiment}#T#"}, ":field": {"S": field}},
    )
    return sum(page["Count"] for page in scanned)
