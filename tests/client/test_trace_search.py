"""Tests that create, search and count traces with the stock client."""

import time

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import SpanType
from mlflow.exceptions import MlflowException


@pytest.fixture(autouse=True)
def _synchronous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")


@pytest.fixture
def traced(client: MlflowClient, experiment: str) -> str:
    """Makes the experiment active for traces, and returns its id."""
    mlflow.set_experiment(experiment_id=experiment)
    return experiment


def _answer(question: str, **tags: str) -> str:
    """Creates a trace of a question and an answer. Returns its id."""
    with mlflow.start_span("agent", span_type=SpanType.AGENT) as span:
        span.set_inputs({"question": question})
        with mlflow.start_span("model", span_type=SpanType.LLM) as call:
            call.set_attribute("model", "gpt-4o")
            call.set_outputs({"answer": f"Über {question}"})
        span.set_outputs(f"about {question}")
        mlflow.update_current_trace(tags=tags)
    return span.trace_id


def _found(experiment: str, filter_string: str | None = None, **options) -> list[str]:
    traces = mlflow.search_traces(locations=[experiment], filter_string=filter_string, return_type="list", **options)
    return [trace.info.trace_id for trace in traces]


def test_traces_are_found_at_once_and_come_back_with_their_spans(traced: str):
    ids = [_answer(f"question {number}", number=str(number)) for number in range(5)]
    assert sorted(_found(traced)) == sorted(ids)
    assert _found(traced, "tags.number = '3'") == [ids[3]]
    assert sorted(_found(traced, "span.name = 'model' AND span.type = 'LLM'")) == sorted(ids)
    assert _found(traced, "span.name = 'agent' AND span.type = 'LLM'") == []
    assert _found(traced, "trace.text LIKE '%Über question 4%'") == [ids[4]]
    assert sorted(_found(traced, "span.attributes.model RLIKE '^gpt-4'")) == sorted(ids)
    trace = mlflow.get_trace(ids[2])
    assert [span.name for span in trace.data.spans] == ["agent", "model"]
    assert len(mlflow.search_traces(locations=[traced])) == 5


def test_pages_hold_every_trace_once(client: MlflowClient, traced: str):
    ids = [_answer(f"question {number}") for number in range(7)]
    for order in [None, ["timestamp ASC"], ["execution_time DESC"]]:
        found, token = [], None
        while True:
            page = client.search_traces(locations=[traced], max_results=3, order_by=order, page_token=token)
            found += [trace.info.trace_id for trace in page]
            token = page.token
            if not token:
                break
        assert len(found) == len(ids) and set(found) == set(ids)


def test_assessments_and_links_are_searched(client: MlflowClient, traced: str):
    good, bad, other = (_answer(question) for question in ("a", "b", "c"))
    mlflow.log_feedback(trace_id=good, name="quality", value=5)
    mlflow.log_feedback(trace_id=bad, name="quality", value=1)
    mlflow.log_expectation(trace_id=other, name="answer", value="Paris")
    assert _found(traced, "feedback.quality > 3") == [good]
    assert sorted(_found(traced, "feedback.quality IS NOT NULL")) == sorted([good, bad])
    assert _found(traced, "expectation.answer = 'Paris'") == [other]
    run = client.create_run(traced).info.run_id
    client.link_traces_to_run([bad], run)
    assert _found(traced, f"run_id = '{run}'") == [bad]
    with pytest.raises(MlflowException, match="Invalid attribute key 'no_field' specified"):
        _found(traced, "no_field = 'x'")


def test_times_limit_a_search(traced: str):
    before = _answer("before")
    time.sleep(0.01)
    now = int(time.time() * 1000)
    after = _answer("after")
    assert _found(traced, f"timestamp >= {now}") == [after]
    assert _found(traced, f"timestamp < {now}") == [before]
    assert _found(traced, order_by=["timestamp DESC"]) == [after, before]
