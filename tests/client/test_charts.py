"""Tests of charts of long histories: exactly MLflow's points, and limited time and memory."""

import contextlib
import random
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.support.pair import pair
from tests.support.servers import ServerlessMlflow, subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="measures this project's server")

_API = "/ajax-api/2.0/mlflow"
_RUNS = 10
#: Number of points per run that a page requests.
_DRAWN = 320
_IN_A_BATCH = 1_000
Point = tuple[int, int, float]


def _start_run(url: str) -> str:
    answer = requests.post(f"{url}{_API}/runs/create", json={"experiment_id": "0"}, timeout=60)
    return answer.json()["run"]["info"]["run_id"]


def _log(url: str, run: str, points: list[Point]) -> None:
    session = requests.Session()
    for start in range(0, len(points), _IN_A_BATCH):
        batch = points[start : start + _IN_A_BATCH]
        metrics = [{"key": "loss", "timestamp": at, "step": step, "value": value} for at, step, value in batch]
        body = {"run_id": run, "metrics": metrics}
        session.post(f"{url}{_API}/runs/log-batch", json=body, timeout=120).raise_for_status()


def _runs_with(url: str, histories: list[list[Point]]) -> list[str]:
    runs = [_start_run(url) for _ in histories]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda logged: _log(url, *logged), zip(runs, histories)))
    return runs


def _drawn(url: str, path: str, runs: list[str], **query: int) -> list[list[Point]]:
    """Requests the points of a metric, and returns them for each run in the order of
    the response.
    """
    asked = {"run_id" if path == "get-history-bulk" else "run_ids": runs, "metric_key": "loss"} | query
    answer = requests.get(f"{url}{_API}/metrics/{path}", asked, timeout=120)
    assert answer.status_code == 200, answer.text
    drawn: dict[str, list[Point]] = {run: [] for run in runs}
    for metric in answer.json().get("metrics", []):
        drawn[metric["run_id"]].append((int(metric["timestamp"]), int(metric["step"]), metric["value"]))
    return [drawn[run] for run in runs]


def _history(seed: int, length: int) -> list[Point]:
    """Returns random points. Steps repeat, come in any order, and have gaps."""
    chosen = random.Random(seed)
    return [(chosen.randrange(1, 50), chosen.randrange(length), chosen.random()) for _ in range(length)]


def _check_same_as_stock(lengths: list[int]) -> None:
    histories = [_history(seed, length) for seed, length in enumerate(lengths)]
    with pair(plain_ids=True) as sides:
        runs = {side.url: _runs_with(side.url, histories) for side in sides}

        def compare(path: str, some: slice, **query: int) -> list[list[Point]]:
            stock, ours = (_drawn(url, path, of_side[some], **query) for url, of_side in runs.items())
            assert ours == stock, (path, query)
            return ours

        interval, every = "get-history-bulk-interval", slice(None)
        for most in (1, 2, 7, _DRAWN, 2_500):
            compare(interval, every, max_results=most)
        middle = lengths[0] // 3
        for start, end in ((middle, 2 * middle), (middle, middle), (0, 10), (10 * middle, 20 * middle)):
            compare(interval, every, max_results=_DRAWN, start_step=start, end_step=end)
        assert all(len(points) == min(_DRAWN, len(history)) for points, history in zip(compare(interval, every, max_results=_DRAWN), histories))
        # One run at a time, because the points of several runs that fit are determined by the order
        # of run ids.
        for number, history in enumerate(histories):
            [points] = compare("get-history-bulk", slice(number, number + 1))
            assert len(points) == min(25_000, len(history))


@pytest.mark.slow
def test_the_same_points_as_mlflow():
    _check_same_as_stock([2_600, 400, 1])


@pytest.mark.slow
def test_the_same_points_of_long_histories_as_mlflow():
    # Shorter than 10,000 points each. Charts of longer histories are only approximately MLflow's
    # (docs/reference/limits.md).
    _check_same_as_stock([9_000] * _RUNS)


@contextlib.contextmanager
def _started(directory: Path) -> Iterator[ServerlessMlflow]:
    server = ServerlessMlflow(directory / "server")
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.slow
def test_a_chart_of_a_million_points(tmp_path: Path):
    """Checks that a chart of a million points, which MLflow's page draws from one request, takes
    at most 2 s for all that the page needs. CPU time is measured, so that other programs do not
    affect the result."""
    length = 100_000
    histories = [[(step, step, float(step % 997 + run)) for step in range(length)] for run in range(_RUNS)]
    with _started(tmp_path) as server:
        runs = _runs_with(server.url, histories)
    # A new process, whose memory has not grown from logging.
    with _started(tmp_path) as server:
        before, times = server.process.peak_kb(), []
        for _ in range(5):
            begin = server.process.cpu_seconds()
            drawn = _drawn(server.url, "get-history-bulk-interval", runs, max_results=_DRAWN)
            times.append(server.process.cpu_seconds() - begin)
            for points, history in zip(drawn, histories):
                assert len(points) == _DRAWN and (points[0], points[-1]) == (history[0], history[-1])
        growth = server.process.peak_kb() - before
    assert statistics.median(times) < 2 and growth < 150 * 1024, (times, growth)
