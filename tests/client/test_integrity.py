"""Tests with concurrent writers, repeated requests, power cuts and malformed input: no write may be
lost or invented.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from tests.client.kinds import kinds
from tests.support.http import Request, Side

_WRITERS = 16
_BATCHES = 8
_POINTS = 10
_ACKNOWLEDGED_BEFORE_THE_KILL = 100
#: Minimum number of writes of each kind before the kill. A writer stops at the maximum.
_LEAST_OF_A_KIND = 3
_MOST_OF_A_KIND = 30
#: Time for the writers to reach these numbers, and then to notice that the server has ended.
_PATIENCE_SECONDS = 120


def _together(work: Callable[[int], object]) -> list:
    """Runs `work` for every writer concurrently, starting at the same time. Any exception fails the
    test.
    """
    start = threading.Barrier(_WRITERS, timeout=_PATIENCE_SECONDS)

    def begin(writer: int) -> object:
        start.wait()
        return work(writer)

    with ThreadPoolExecutor(_WRITERS) as threads:
        return list(threads.map(begin, range(_WRITERS)))


def test_concurrent_writers_to_one_run(client: MlflowClient, run_id: str):
    # The client does not retry here, so a 5xx would surface.
    def write(writer: int) -> None:
        for batch in range(_BATCHES):
            steps = range(batch * _POINTS, (batch + 1) * _POINTS)
            shared = [Metric("shared", writer, step, step) for step in steps]
            client.log_batch(
                run_id,
                metrics=[*shared, Metric(f"own {writer}", batch, batch, batch)],
                params=[Param(f"p {writer} {batch}", "v"), Param("same for all", "v")],
                tags=[RunTag(f"t {writer}", str(batch)), RunTag("contested", str(writer))],
            )

    _together(write)

    run = client.get_run(run_id)
    steps = range(_BATCHES * _POINTS)
    shared = [(point.step, point.value) for point in client.get_metric_history(run_id, "shared")]
    assert shared == [(step, writer) for step in steps for writer in range(_WRITERS)]
    assert run.data.metrics["shared"] == _WRITERS - 1
    for writer in range(_WRITERS):
        own = client.get_metric_history(run_id, f"own {writer}")
        assert [point.value for point in own] == list(range(_BATCHES))
        assert run.data.metrics[f"own {writer}"] == _BATCHES - 1
        assert run.data.tags[f"t {writer}"] == str(_BATCHES - 1)
    assert len(run.data.params) == _WRITERS * _BATCHES + 1
    assert int(run.data.tags["contested"]) in range(_WRITERS)


@pytest.mark.slow
def test_concurrent_writers_to_one_experiment(client: MlflowClient, experiment: str):
    def write(writer: int) -> list[str]:
        ids = []
        for number in range(_BATCHES):
            run = client.create_run(experiment, start_time=1, run_name=f"{writer} {number}")
            client.log_metric(run.info.run_id, "m", number)
            client.set_experiment_tag(experiment, f"t {writer}", str(number))
            client.set_terminated(run.info.run_id)
            ids.append(run.info.run_id)
        return ids

    written = {run_id for ids in _together(write) for run_id in ids}

    found = client.search_runs(experiment, "metrics.m >= 0 AND status = 'FINISHED'", max_results=1000)
    assert {run.info.run_id for run in found} == written
    assert len(written) == _WRITERS * _BATCHES
    tags = client.get_experiment(experiment).tags
    assert {tags[f"t {writer}"] for writer in range(_WRITERS)} == {str(_BATCHES - 1)}


def test_one_name_goes_to_one_of_many(side: Side, tmp_path):
    request = Request.of_json("POST", "/api/2.0/mlflow/experiments/create", {"name": f"contested {tmp_path}"})
    statuses = sorted(answer.status for answer in _together(lambda _: side.send(request)))
    assert statuses == [200] + [400] * (_WRITERS - 1)


def test_one_param_value_wins(client: MlflowClient, side: Side, run_id: str):
    def write(writer: int) -> tuple[int, str]:
        body = {"run_id": run_id, "key": "p", "value": str(writer)}
        return side.send(Request.of_json("POST", "/api/2.0/mlflow/runs/log-parameter", body)).status, str(writer)

    winners = [value for status, value in _together(write) if status == 200]
    assert [client.get_run(run_id).data.params["p"]] == winners


def test_a_batch_sent_twice_is_stored_once(client: MlflowClient, side: Side, run_id: str):
    body = {
        "run_id": run_id,
        "metrics": [{"key": f"m{step % 7}", "value": step, "timestamp": step, "step": step} for step in range(900)],
        "params": [{"key": f"p{number}", "value": "v"} for number in range(50)],
        "tags": [{"key": f"t{number}", "value": "v"} for number in range(50)],
    }
    request = Request.of_json("POST", "/api/2.0/mlflow/runs/log-batch", body)
    assert side.send(request).status == 200
    once = _state(client, run_id)
    assert side.send(request).status == 200
    assert _state(client, run_id) == once
    assert sum(len(history) for history in once[1].values()) == 900


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("log-metric", {"key": "m", "value": "abc", "timestamp": 1}),
        ("log-metric", {"key": "..", "value": 1, "timestamp": 1}),
        ("log-metric", {"key": "m", "value": 1, "timestamp": -1}),
        ("log-parameter", {"key": "p", "value": "changed"}),
        ("log-parameter", {"key": "a//b", "value": "x"}),
        ("set-tag", {"key": "/t", "value": "x"}),
        ("log-batch", {"tags": [{"key": "new", "value": "x"}], "params": [{"key": "..", "value": "x"}]}),
        ("log-batch", {"params": [{"key": "new", "value": "1"}], "tags": [{"key": "a#b", "value": "x"}]}),
        ("log-batch", {"params": [{"key": "new", "value": "1"}, {"key": "p", "value": "changed"}]}),
        ("log-batch", {"tags": [{"key": "new", "value": "x"}], "params": [{"key": "d", "value": "x"}] * 2}),
        ("log-batch", {"metrics": [{"key": f"m{number}", "value": 1, "timestamp": 1} for number in range(1001)]}),
        ("log-batch", {"metrics": [{"key": "new", "value": 1, "timestamp": 1}, {"key": "m", "value": 1}]}),
        ("update", {"end_time": "tomorrow", "status": "KILLED"}),
    ],
)
def test_malformed_input_leaves_nothing_written(client: MlflowClient, side: Side, run_id: str, path: str, body: dict):
    client.log_param(run_id, "p", "original")
    before = _state(client, run_id)
    answer = side.send(Request.of_json("POST", f"/api/2.0/mlflow/runs/{path}", {"run_id": run_id, **body}))
    assert answer.status == 400
    assert _state(client, run_id) == before


def test_what_was_acknowledged_survives_a_kill(start_server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    server = start_server()
    client = MlflowClient(server.url)
    experiment = client.create_experiment("killed", artifact_location="s3://bucket/killed")
    run_id = client.create_run(experiment, run_name="before").info.run_id
    acknowledged: list[tuple[int, int]] = []
    enough = threading.Event()

    def write(writer: int) -> int:
        """Logs until the server is gone. Returns the first number whose write was not
        acknowledged."""
        side, number = Side(f"writer {writer}", server.url), 0
        deadline = time.monotonic() + 2 * _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            body = {
                "run_id": run_id,
                "metrics": [{"key": f"m{writer}", "value": number, "timestamp": number, "step": number}],
                "params": [{"key": f"p {writer} {number}", "value": "v"}],
                "tags": [{"key": f"t{writer}", "value": str(number)}],
            }
            try:
                answer = side.send(Request.of_json("POST", "/api/2.0/mlflow/runs/log-batch", body))
            except requests.RequestException:
                return number
            assert answer.status == 200, answer
            acknowledged.append((writer, number))
            number += 1
            if len(acknowledged) >= _ACKNOWLEDGED_BEFORE_THE_KILL:
                enough.set()
        raise AssertionError("the server still responds after the kill")

    with ThreadPoolExecutor(_WRITERS) as threads:
        writers = [threads.submit(write, writer) for writer in range(_WRITERS)]
        assert enough.wait(_PATIENCE_SECONDS), "too few writes were acknowledged in time"
        server.kill()
        first_lost = [writer.result() for writer in writers]

    client = MlflowClient(start_server().url)
    run = client.get_run(run_id)
    for writer, number in acknowledged:
        assert f"p {writer} {number}" in run.data.params
    for writer, lost in enumerate(first_lost):
        stored = [int(point.value) for point in client.get_metric_history(run_id, f"m{writer}")]
        # Only the request in flight at the time of the kill may have been stored or not.
        assert stored in (list(range(lost)), list(range(lost + 1)))
        if lost:
            assert int(run.data.tags[f"t{writer}"]) in (lost - 1, lost)
    client.log_metric(run_id, "after", 1)
    assert client.search_runs(experiment)[0].data.metrics["after"] == 1


def test_every_kind_of_write_survives_a_kill(start_server):
    """Runs a concurrent writer for each kind of write, until the server is killed while
    they write.
    """
    server = start_server()
    written = kinds(Side("before", server.url))
    acknowledged: list[list] = [[] for _ in written]

    def write(kind: int) -> None:
        side, made = Side(written[kind].name, server.url), acknowledged[kind]
        while len(made) < _MOST_OF_A_KIND:
            try:
                made.append(written[kind].write(side, len(made)))
            except requests.RequestException:
                return

    with ThreadPoolExecutor(len(written)) as threads:
        writers = [threads.submit(write, kind) for kind in range(len(written))]
        deadline = time.monotonic() + 2 * _PATIENCE_SECONDS
        while min(len(made) for made in acknowledged) < _LEAST_OF_A_KIND:
            assert time.monotonic() < deadline, [len(made) for made in acknowledged]
            for writer in writers:
                if writer.done():
                    writer.result()
            time.sleep(0.01)
        server.kill()
        for writer in writers:
            writer.result()

    side = Side("after", start_server().url)
    for kind, made in zip(written, acknowledged, strict=True):
        for number, one in enumerate(made):
            assert kind.is_there(side, number, one), f"{kind.name} {number}"
        # Writes in flight may be stored or not. In either case, the next write must succeed.
        kind.write(side, _MOST_OF_A_KIND + 1)


def _state(client: MlflowClient, run_id: str) -> tuple[dict, dict]:
    """Returns everything about a run in a form that can be compared."""
    run = client.get_run(run_id)
    histories = {
        key: [(point.timestamp, point.step, point.value) for point in client.get_metric_history(run_id, key)]
        for key in run.data.metrics
    }
    return run.to_dictionary(), histories
