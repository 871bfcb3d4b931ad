"""What clients have created on this server is exported as they see it."""

import base64
import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import ServerlessMlflow, StockMlflow, stock_database
from tests.transfer import evaluation
from tests.transfer.commands import run

T = 1_700_000_000_000


def _log_histories(client: Any, run_id: str) -> None:
    """Logs metrics in all ways that are stored differently."""
    from mlflow.entities import Metric

    client.log_metric(run_id, "single", 0.5, timestamp=T, step=1)
    for step in range(30):
        client.log_metric(run_id, "one by one", step / 7, timestamp=T + step, step=step)
    for start in range(0, 2_400, 100):
        client.log_batch(run_id, [Metric("long", step / 3, T + step, step) for step in range(start, start + 100)])
    keys = ["a", "b c", "n" * 250, "é/ü"]
    client.log_batch(run_id, [Metric(key, step * 1.5, T + step, step) for key in keys for step in range(99)])
    client.log_batch(run_id, [Metric("few", math.inf if step == 3 else step, T, step) for step in range(9)])
    client.log_batch(run_id, [Metric("nan", math.nan, T + step, 0) for step in range(12)])


def _fill(url: str) -> None:
    import mlflow
    from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, LoggedModelParameter, Metric, Param, RunTag

    client = mlflow.MlflowClient(url)
    experiment = client.create_experiment("training", tags={"team": "a"})
    client.rename_experiment(client.create_experiment("before"), "after")
    client.delete_experiment(client.create_experiment("gone"))
    ended = client.create_run(experiment, start_time=T, tags={"mlflow.note.content": "n" * 3_000}, run_name="ended").info.run_id
    _log_histories(client, ended)
    client.log_batch(ended, params=[Param(f"p{number}", "v" * (number * 50)) for number in range(40)], tags=[RunTag("t", "ü")])
    client.log_inputs(ended, [DatasetInput(Dataset("data", "d1", "local", "{}", schema="{}"), [InputTag("context", "train")])])
    model = client.create_logged_model(experiment, name="m", source_run_id=ended, tags={"k": "v"}, params={"lr": "1"}, model_type="t")
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(ended, [LoggedModelOutput(model.model_id, 3)])
    client.log_batch(ended, [Metric("of model", 0.25, T, 3, model_id=model.model_id, run_id=ended)])
    client.set_terminated(ended, "FINISHED", T + 9_000)
    running = client.create_run(experiment, start_time=T + 1, tags={"mlflow.parentRunId": ended}).info.run_id
    _log_histories(client, running)
    of_one_call = client.create_run(experiment, start_time=T + 3).info.run_id
    client.log_batch(of_one_call, [Metric("loss", step / 3, T + step, step) for step in range(50)])
    client.set_terminated(of_one_call)
    deleted = client.create_run(experiment, start_time=T + 2).info.run_id
    _log_histories(client, deleted)
    client.delete_run(deleted)

    client.create_registered_model("first", tags={"a": "b"}, description="d")
    for number in range(3):
        client.create_model_version("first", f"s3://bucket/{number}", run_id=ended, tags={"n": str(number)})
    client.rename_registered_model("first", "renamed")
    client.set_registered_model_alias("renamed", "champion", "2")
    client.transition_model_version_stage("renamed", "1", "Production")
    client.delete_model_version("renamed", "3")
    client.create_prompt("greeting", description="p")
    client.create_prompt_version("greeting", "Hello {{name}}", tags={"x": "y"})

    for number in range(3):
        _log_trace(client._tracking_client.store, experiment, number)


def _log_trace(store: Any, experiment: str, number: int) -> None:
    from mlflow.entities import Expectation, Feedback, TraceInfo, TraceLocation, TraceState
    from mlflow.entities.span import Span

    trace = f"tr-{number + 1:032x}"
    location = TraceLocation.from_experiment_id(experiment)
    store.start_trace(TraceInfo(trace, location, T + number, TraceState.OK if number else TraceState.ERROR, execution_duration=7, request_preview="q"))
    spans = []
    for span in range(1, 4):
        attributes = {"mlflow.traceRequestId": json.dumps(trace), "mlflow.spanInputs": json.dumps({"ü": span}), "k": "[1, 2]"}
        spans.append(
            Span.from_dict(
                {
                    "trace_id": base64.b64encode(bytes.fromhex(trace[3:])).decode(),
                    "span_id": base64.b64encode(span.to_bytes(8, "big")).decode(),
                    "parent_span_id": base64.b64encode((1).to_bytes(8, "big")).decode() if span > 1 else None,
                    "name": f"span {span}",
                    "start_time_unix_nano": (T + span) * 1_000_000,
                    "end_time_unix_nano": (T + span + 5) * 1_000_000,
                    "events": [],
                    "status": {"code": "STATUS_CODE_OK", "message": ""},
                    "attributes": attributes,
                }
            )
        )
    store.log_spans(experiment, spans)
    store.set_trace_tag(trace, "later", "w")
    store.create_assessment(Feedback(name="quality", value={"a": [1, None]}, trace_id=trace, rationale="r"))
    store.create_assessment(Expectation(name="answer", value="42", trace_id=trace))


def _seen(url: str) -> dict[str, Any]:
    """Returns what clients see, by what it is."""
    import mlflow
    from mlflow.entities import ViewType

    client = mlflow.MlflowClient(url)
    store = client._tracking_client.store
    seen: dict[str, Any] = {}
    experiments = client.search_experiments(ViewType.ALL)
    ids = sorted(experiment.experiment_id for experiment in experiments)
    for experiment in experiments:
        seen[f"experiment {experiment.experiment_id}"] = dict(experiment)
    for run_ in client.search_runs(ids, run_view_type=ViewType.ALL):
        run_id = run_.info.run_id
        seen[f"run {run_id}"] = {
            "info": dict(run_.info),
            "params": run_.data.params,
            "tags": run_.data.tags,
            "metrics": run_.data.metrics,
            "inputs": run_.inputs.to_dictionary(),
            "outputs": run_.outputs.to_dictionary(),
        }
        for metric in run_.data.metrics:
            history = client.get_metric_history(run_id, metric)
            seen[f"{metric} of {run_id}"] = [(point.step, point.timestamp, point.value) for point in history]
    for model in client.search_logged_models(ids):
        seen[f"logged model {model.model_id}"] = model.to_dictionary()
    for model in client.search_registered_models():
        seen[f"model {model.name}"] = {**dict(model), "latest_versions": None}
        for version in client.search_model_versions(f"name = '{model.name}'"):
            seen[f"version {model.name} {version.version}"] = dict(client.get_model_version(model.name, version.version))
    for trace in store.search_traces(locations=ids)[0]:
        info = store.get_trace_info(trace.trace_id)
        spans = store.batch_get_traces([trace.trace_id])[0].data.spans
        seen[f"trace {trace.trace_id}"] = {"info": info.to_dict(), "spans": [span.to_dict() for span in spans]}

    def as_json(value: Any) -> Any:
        return vars(value) if hasattr(value, "__dict__") else str(value)

    # As texts, because NaN is not equal to itself.
    return {what: json.dumps(value, sort_keys=True, default=as_json) for what, value in seen.items()} | evaluation.seen(url)


@contextlib.contextmanager
def _stopping(server: ServerlessMlflow | StockMlflow) -> Iterator[str]:
    """Yields the URL of a server, and stops it."""
    try:
        yield server.url
    finally:
        server.stop()


@pytest.mark.parametrize("moment", [pytest.param("before indexing", marks=pytest.mark.slow), "while indexing"])
def test_an_export_has_everything_that_clients_see(tmp_path: Path, moment: str) -> None:
    options = ["--no-indexer"] if moment == "before indexing" else []
    with _stopping(ServerlessMlflow(tmp_path / "subject", options=options)) as url:
        _fill(url)
        expected = _seen(url)
    (tmp_path / "stock").mkdir()
    file = stock_database(tmp_path / "stock")
    run("export", "--to", file, "--data", tmp_path / "subject/data")
    run("import", "--from", f"sqlite:///{file}", "--data", tmp_path / "imported/data")
    for start in (lambda: StockMlflow(tmp_path / "stock"), lambda: ServerlessMlflow(tmp_path / "imported")):
        with _stopping(start()) as url:
            found = _seen(url)
        assert found.keys() == expected.keys()
        for what, value in expected.items():
            assert found[what] == value, what
