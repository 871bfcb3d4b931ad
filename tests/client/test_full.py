"""Tests how the stock client behaves in an experiment whose partition is full."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from tests.support.full_engine import FullEngine
from tests.support.servers import ServerlessMlflow, binary, subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="needs the table of this project's server")


@pytest.fixture
def table(tmp_path: Path) -> Iterator[FullEngine]:
    with FullEngine.over_new_engine(tmp_path / "engine") as table:
        yield table


@pytest.fixture
def client(table: FullEngine, tmp_path: Path, forgetful_client: None) -> Iterator[MlflowClient]:
    server = ServerlessMlflow(tmp_path / "server", options=(*table.options, "--no-ui"), environment=table.environment)
    try:
        mlflow.set_tracking_uri(server.url)
        yield MlflowClient(server.url)
    finally:
        mlflow.set_tracking_uri(None)
        server.stop()


def _gc(table: FullEngine) -> str:
    command = [str(binary()), "gc", *table.options, "--leave-artifacts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | table.environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _is_refused(call: Callable[[], object]) -> None:
    """Checks that the call is refused with a message that says what to do."""
    with pytest.raises(MlflowException) as refused:
        call()
    assert refused.value.error_code == "BAD_REQUEST"
    for said in ("10 GB", "can still be ended", "Delete runs", "`mlflow-serverless gc`", "another experiment"):
        assert said in str(refused.value)


def test_runs_of_a_full_experiment_end_and_gc_makes_room(client: MlflowClient, table: FullEngine) -> None:
    experiment, elsewhere = client.create_experiment("full"), client.create_experiment("elsewhere")
    going_on, deleted = (client.create_run(experiment).info.run_id for _ in range(2))
    client.log_metric(going_on, "loss", 0.5, step=1)
    for key in "abc":
        client.log_param(deleted, key, key * 900)
    client.delete_run(deleted)

    with pytest.raises(MlflowException, match="mlflow-serverless gc"), mlflow.start_run(experiment_id=experiment) as run:
        table.fill(f"EXP#{experiment}")
        mlflow.log_metric("loss", 0.1)
    failed = run.info.run_id
    # The client has ended the run by itself.
    assert client.get_run(failed).info.status == "FAILED"
    # Ending a run frees some bytes.
    table.fill(f"EXP#{experiment}")
    calls: list[Callable[[], object]] = [
        lambda: client.log_metric(going_on, "loss", 0.4, step=2),
        lambda: client.log_param(going_on, "rate", 0.1),
        lambda: client.set_tag(going_on, "note", "x"),
        lambda: client.create_run(experiment),
    ]
    for call in calls:
        _is_refused(call)
    assert table.refused >= len(calls) + 1
    client.set_terminated(going_on)
    assert client.get_run(going_on).info.status == "FINISHED"
    assert client.get_run(going_on).info.end_time is not None
    # Other experiments are not affected.
    client.log_metric(client.create_run(elsewhere).info.run_id, "loss", 1)

    assert _gc(table) == f"Run with ID {deleted} has been permanently deleted.\n"
    for call in calls:
        call()
    assert [point.step for point in client.get_metric_history(going_on, "loss")] == [1, 2]
    assert len(client.search_runs([experiment])) == 3
