"""Links of traces to runs in the order of stock clients: traces are exported in the background, and
arrive after the link.
"""

import mlflow
import pytest
from mlflow import MlflowClient

@pytest.fixture(autouse=True)
def _in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "true")


def _traced(question: str) -> str:
    """Creates a trace without waiting for its export. Returns the trace's id."""
    with mlflow.start_span("agent") as span:
        span.set_inputs({"question": question})
        span.set_outputs("answer")
    return span.trace_id


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_traces_that_are_exported_in_the_background_are_found_by_the_run_that_they_were_linked_to(
    client: MlflowClient, experiment: str, rounds: int
):
    """Repeats the order of requests that is usual for clients many times on one server."""
    mlflow.set_experiment(experiment_id=experiment)
    linked = {}
    for number in range(rounds):
        run_id = client.create_run(experiment).info.run_id
        traces = [_traced(f"{number} {which}") for which in ("one", "other")]
        client.link_traces_to_run(traces, run_id)
        linked[run_id] = sorted(traces)
    mlflow.flush_trace_async_logging()
    for run_id, traces in linked.items():
        found = client.search_traces(locations=[experiment], run_id=run_id, include_spans=False)
        assert sorted(trace.info.trace_id for trace in found) == traces


def test_a_link_may_come_before_its_trace_and_while_it_comes(client: MlflowClient, experiment: str):
    mlflow.set_experiment(experiment_id=experiment)
    run_id = client.create_run(experiment).info.run_id
    traces = []
    for number in range(20):
        traces.append(_traced(f"question {number}"))
        # Links all traces again. Some have arrived by now.
        client.link_traces_to_run(traces, run_id)
    mlflow.flush_trace_async_logging()
    found = client.search_traces(locations=[experiment], run_id=run_id, max_results=100)
    assert sorted(trace.info.trace_id for trace in found) == sorted(traces)
