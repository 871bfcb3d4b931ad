"""Tests how the stock client behaves if a partition is throttled."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import urllib3.util.retry
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from tests.support.servers import ServerlessMlflow, subject_is_stock_mlflow
from tests.support.throttled_engine import ThrottledEngine

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="needs the table of this project's server")

#: Range of `Retry-After`, in seconds.
_COME_BACK_AFTER = range(5, 16)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ThrottledEngine]:
    with ThrottledEngine.over_new_engine(tmp_path / "engine") as table:
        yield table


@pytest.fixture
def client(table: ThrottledEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowClient]:
    """Yields a client with its default settings, which retries a request up to seven times."""
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    server = ServerlessMlflow(tmp_path / "server", options=(*table.options, "--no-ui"), environment=table.environment)
    try:
        yield MlflowClient(server.url)
    finally:
        server.stop()


def _run(client: MlflowClient, name: str) -> tuple[str, str]:
    experiment = client.create_experiment(name)
    return experiment, client.create_run(experiment).info.run_id


def _throttle(table: ThrottledEngine, experiment: str, run_id: str) -> None:
    """Throttles all requests about an experiment and its run."""
    table.throttled = {f'"EXP#{experiment}"', run_id}


def test_the_client_comes_back_when_it_is_told_to(client: MlflowClient, table: ThrottledEngine, monkeypatch: pytest.MonkeyPatch):
    hot, run_id = _run(client, "hot")
    _, other = _run(client, "cold")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        """Replaces the pause between retries. Throttling ends at every second pause."""
        pauses.append(seconds)
        # The rest of the table is not affected.
        client.log_metric(other, "loss", len(pauses))
        if len(pauses) % 2 == 0:
            table.throttled = set()

    monkeypatch.setattr(urllib3.util.retry, "time", SimpleNamespace(sleep=sleep, time=time.time))
    for call in (
        lambda: client.log_metric(run_id, "loss", 0.5, step=1),
        lambda: client.get_run(run_id),
        lambda: client.search_runs([hot]),
        lambda: client.create_run(hot, run_name="another"),
    ):
        _throttle(table, hot, run_id)
        pauses.clear()
        call()
        assert len(pauses) == 2 and all(pause in _COME_BACK_AFTER for pause in pauses), pauses
    # Each call was applied exactly once.
    assert [(point.step, point.value) for point in client.get_metric_history(run_id, "loss")] == [(1, 0.5)]
    assert sorted(run.info.run_name == "another" for run in client.search_runs([hot])) == [False, True]


def test_a_client_that_does_not_come_back_knows_after_three_attempts(client: MlflowClient, table: ThrottledEngine, monkeypatch: pytest.MonkeyPatch):
    experiment, run_id = _run(client, "hot")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    _throttle(table, experiment, run_id)
    with pytest.raises(MlflowException, match="429"):
        client.log_metric(run_id, "loss", 0.5)
    # The total time of the pauses is tested with a simulated clock (`cli/tests/it/throttling.rs`).
    assert table.refused == 3
