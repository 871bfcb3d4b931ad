"""Tests that a server with a remote table indexes it from its stream, if
`--follow-stream` is set.
"""

import time
from pathlib import Path

from mlflow import MlflowClient

from tests.support.local_engine import LocalEngine, local_engine
from tests.support.servers import ServerlessMlflow

_PATIENCE_SECONDS = 180
_FOLLOWING = ("--follow-stream", "--run-indexing-interval", "0")


def _server(directory: Path, engine: LocalEngine, *options: str) -> ServerlessMlflow:
    options = ("--dynamodb-endpoint", engine.url, *options)
    return ServerlessMlflow(directory, options=options, environment=engine.environment)


def _ended_run(client: MlflowClient, experiment: str, kind: str) -> str:
    run = client.create_run(experiment, tags={"kind": kind}).info.run_id
    client.log_metric(run, "loss", 0.5)
    client.set_terminated(run)
    return run


def _all_indexed(engine: LocalEngine, experiment: str) -> bool:
    end = time.monotonic() + _PATIENCE_SECONDS
    while engine.marks(experiment):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_runs_of_before_and_after_a_restart_are_indexed(tmp_path: Path):
    with local_engine(tmp_path / "engine") as engine:
        # Without the option, the table is not indexed.
        server = _server(tmp_path / "first", engine)
        try:
            client = MlflowClient(server.url)
            experiment = client.create_experiment("followed")
            runs = [_ended_run(client, experiment, "a")]
            assert engine.marks(experiment) == 1
        finally:
            server.stop()
        for attempt in ("second", "third"):
            server = _server(tmp_path / attempt, engine, *_FOLLOWING)
            try:
                client = MlflowClient(server.url)
                assert _all_indexed(engine, experiment)
                runs.append(_ended_run(client, experiment, "a"))
                assert _all_indexed(engine, experiment)
                found = client.search_runs([experiment], "tags.kind = 'a'")
                assert {run.info.run_id for run in found} == set(runs)
            finally:
                server.stop()


def test_it_is_for_a_table_elsewhere(tmp_path: Path):
    try:
        ServerlessMlflow(tmp_path / "server", in_memory=True, options=("--follow-stream",)).stop()
    except RuntimeError as error:
        assert "cannot be used with '--follow-stream'" in str(error)
    else:
        raise AssertionError("the server has started")
