"""Tests that `mlflow-serverless gc` removes deleted entities with their artifacts, with and without
a running server on the same data.
"""

import subprocess
import time
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from tests.support.servers import ServerlessMlflow, binary


def _gc(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), "gc", "--data", str(directory / "data"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def _run(client: MlflowClient, experiment: str) -> str:
    run = client.create_run(experiment).info.run_id
    for step in range(20):
        client.log_metric(run, "loss", 1 / (step + 1), step=step)
    client.log_param(run, "model", "a")
    client.log_text(run, "weights", "model/weights.txt")
    return run


def _files(directory: Path, text: str) -> list[Path]:
    return [path for path in (directory / "data/artifacts").rglob("*") if text in str(path)]


def _is_missing(client: MlflowClient, run: str) -> bool:
    with pytest.raises(MlflowException) as refused:
        client.get_run(run)
    return refused.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_what_was_deleted_is_removed_for_good(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
    try:
        client = MlflowClient(server.url)
        experiment, gone = client.create_experiment("stays"), client.create_experiment("goes")
        kept, deleted, restored = (_run(client, experiment) for _ in range(3))
        of_gone = _run(client, gone)
        for run in (deleted, restored):
            client.delete_run(run)
        client.restore_run(restored)
        client.delete_experiment(gone)
    finally:
        server.stop()

    said = _gc(tmp_path, "--dry-run").stdout.splitlines()
    assert said == [
        f"Run with ID {deleted} would be permanently deleted.",
        f"Experiment with ID {gone} would be permanently deleted.",
    ]
    assert _gc(tmp_path, "--older-than", "1d").stdout == ""
    refused = _gc(tmp_path, "--run-ids", f"{deleted},{kept}")
    assert refused.returncode == 1
    assert f"Run {kept} is not in `deleted` lifecycle stage." in refused.stderr
    assert _files(tmp_path, deleted)

    done = _gc(tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        [
            f"Run with ID {deleted} has been permanently deleted.",
            f"Run with ID {of_gone} has been permanently deleted.",
            f"Experiment with ID {gone} has been permanently deleted.",
        ]
    )
    assert _gc(tmp_path).stdout == ""
    assert not _files(tmp_path, deleted) and not _files(tmp_path, of_gone)

    server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
    try:
        client = MlflowClient(server.url)
        assert _is_missing(client, deleted) and _is_missing(client, of_gone)
        with pytest.raises(MlflowException):
            client.restore_run(deleted)
        assert [found.name for found in client.search_experiments()] == ["stays", "Default"]
        assert {run.info.run_id for run in client.search_runs([experiment], run_view_type=3)} == {kept, restored}
        for run in (kept, restored):
            assert len(client.get_metric_history(run, "loss")) == 20
            assert [file.path for file in client.list_artifacts(run, "model")] == ["model/weights.txt"]
        # The name is available again.
        assert client.create_experiment("goes") != gone
    finally:
        server.stop()


@pytest.mark.slow
def test_a_server_goes_on_meanwhile(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
    try:
        client = MlflowClient(server.url)
        runs = [_run(client, "0") for _ in range(30)]
        for run in runs:
            client.delete_run(run)
        assert _gc(tmp_path, "--set-policy", "0s").stdout == "Deleted entities are kept for 0s.\n"
        done = _gc(tmp_path)
        assert done.stdout.count("has been permanently deleted") == 30, done.stderr
        assert _is_missing(client, runs[0])
        assert not client.search_runs(["0"], run_view_type=3)
        assert _gc(tmp_path, "--set-policy", "off").stdout == (
            "There is no retention policy: `gc` without an age removes all deleted entities.\n"
        )
    finally:
        server.stop()


def test_only_traces_whose_time_is_over_are_removed_where_that_is_asked(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
    try:
        client = MlflowClient(server.url)
        experiment, gone = client.create_experiment("stays"), client.create_experiment("goes")
        deleted, of_gone = _run(client, experiment), _run(client, gone)
        client.delete_run(deleted)
        client.delete_experiment(gone)
        mlflow.set_tracking_uri(server.url)
        began = time.time_ns() - 4 * 86_400 * 10**9
        mlflow.start_span_no_context("old", experiment_id=experiment, start_time_ns=began).end(end_time_ns=began + 10**6)
        mlflow.flush_trace_async_logging()
    finally:
        mlflow.set_tracking_uri(None)
        server.stop()
    of_a_trace = f"traces/tr-{0:032x}/artifacts"
    file = tmp_path / "data/artifacts" / experiment / of_a_trace / "traces.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")

    for other in (
        ["--older-than", "1d"],
        ["--run-ids", deleted],
        ["--experiment-ids", gone],
        ["--logged-model-ids", "m-1"],
        ["--leave-artifacts"],
        ["--set-policy", "1d"],
        ["--set-trace-policy", "1d"],
    ):
        refused = _gc(tmp_path, "--expired", *other)
        assert refused.returncode == 2 and "cannot be used with" in refused.stderr, other
    assert _gc(tmp_path, "--expired", "--dry-run").stdout == ""
    _gc(tmp_path, "--set-trace-policy", "1d")
    said = _gc(tmp_path, "--expired", "--dry-run").stdout.splitlines()
    assert len(said) == 1 and said[0].startswith(f"Traces of experiment {experiment} from before "), said
    assert file.exists()

    done = _gc(tmp_path, "--expired")
    assert done.returncode == 0, done.stderr
    # The trace was marked less than three minutes ago, so it is not removed yet.
    assert done.stdout == ""
    assert not _files(tmp_path, of_a_trace)
    # Deleted entities are not removed.
    assert _files(tmp_path, deleted) and _files(tmp_path, of_gone)
    said = _gc(tmp_path, "--dry-run").stdout
    assert f"Run with ID {deleted} would" in said and f"Experiment with ID {gone} would" in said


def test_traces_are_kept_for_as_long_as_the_policy_says(tmp_path: Path) -> None:
    server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
    try:
        mlflow.set_tracking_uri(server.url)
        client = MlflowClient(server.url)
        experiment = client.create_experiment("traced")
        now = time.time_ns()
        for name, began in [("old", now - 4 * 86_400 * 10**9), ("new", now)]:
            span = mlflow.start_span_no_context(name, experiment_id=experiment, start_time_ns=began)
            span.end(end_time_ns=began + 10**6)
        mlflow.flush_trace_async_logging()

        def names() -> list[str]:
            traces = mlflow.search_traces(locations=[experiment], return_type="list")
            return sorted(trace.data.spans[0].name for trace in traces)

        assert names() == ["new", "old"]
        old = mlflow.search_traces(locations=[experiment], return_type="list", order_by=["timestamp_ms ASC"])[0]
        with pytest.raises(MlflowException, match="Trace retention must be"):
            client.set_experiment_tag(experiment, "mlflow.trace.retention", "soon")
        client.set_experiment_tag(experiment, "mlflow.trace.retention", "1d")
        # Restarts the server, because it caches the policy for a minute.
        server.stop()
        server = ServerlessMlflow(tmp_path, artifact_root="mlflow-artifacts:/")
        mlflow.set_tracking_uri(server.url)
        assert names() == ["new"]
        assert mlflow.get_trace(old.info.trace_id) is None
        assert _gc(tmp_path, "--set-trace-policy", "30d").stdout == "Traces are kept for 30d after their start.\n"
        done = _gc(tmp_path, "--dry-run")
        assert f"Traces of experiment {experiment} from before" in done.stdout, done.stderr
        assert _gc(tmp_path, "--set-trace-policy", "off").stdout == "Traces are kept forever.\n"
        assert names() == ["new"]
    finally:
        mlflow.set_tracking_uri(None)
        server.stop()
