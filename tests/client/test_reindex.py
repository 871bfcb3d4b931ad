"""Tests `mlflow-serverless reindex`, with and without a running server on the same data."""

import subprocess
from pathlib import Path

from mlflow import MlflowClient

from tests.support.servers import ServerlessMlflow, binary

_RUNS = 7
_FILTER = "metrics.acc > 2 AND params.model = 'a' AND tags.team = 'red'"


def _reindex(directory: Path, *options: str) -> str:
    command = [str(binary()), "reindex", "--data", str(directory / "data"), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def _found(client: MlflowClient, experiment: str) -> list[float]:
    runs = client.search_runs([experiment], _FILTER, order_by=["metrics.acc DESC"])
    return [run.data.metrics["acc"] for run in runs]


def test_the_index_is_built_anew(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path)
    try:
        client = MlflowClient(server.url)
        experiment = client.create_experiment("reindexed")
        for number in range(_RUNS):
            run = client.create_run(experiment, run_name=f"run {number}").info.run_id
            client.log_metric(run, "acc", number)
            client.log_param(run, "model", "a")
            client.set_tag(run, "team", "red")
        expected = [6.0, 5.0, 4.0, 3.0]
        assert _found(client, experiment) == expected
        assert _reindex(tmp_path).startswith(f"{_RUNS} runs of 2 experiments indexed, 0 stray entries removed")
        assert _found(client, experiment) == expected
    finally:
        server.stop()
    # No server feeds the indexer now.
    assert _reindex(tmp_path, "--experiment", experiment).startswith(f"{_RUNS} runs of 1 experiments indexed")
