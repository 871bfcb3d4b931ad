"""Tests of traces from `mlflow.tracing` and OpenTelemetry's SDK."""

import json
import random
import threading

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Expectation, SpanType
from mlflow.exceptions import MlflowException

from tests.support.http import Side

#: Number of concurrent exporters.
_EXPORTERS = 24


@pytest.fixture(autouse=True)
def _in_experiment(experiment: str):
    mlflow.set_experiment(experiment_id=experiment)
    yield
    mlflow.flush_trace_async_logging()


def agent(question: str) -> str:
    """Runs a few traced steps: a retriever, a model call, and a tool that fails."""
    with mlflow.start_span("agent", span_type=SpanType.AGENT) as root:
        root.set_inputs({"question": question})
        with mlflow.start_span("retrieve", span_type=SpanType.RETRIEVER) as span:
            span.set_inputs({"query": question})
            span.set_outputs([{"page_content": "a platform", "metadata": {"doc": 1}}])
        with mlflow.start_span("chat", span_type=SpanType.CHAT_MODEL) as span:
            span.set_attribute("mlflow.chat.tokenUsage", {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15})
            span.add_event(mlflow.entities.SpanEvent("token", attributes={"text": "é"}))
        with mlflow.start_span("tool", span_type=SpanType.TOOL) as span:
            span.set_status("ERROR")
        mlflow.update_current_trace(tags={"team": "search"}, metadata={"mlflow.trace.session": "s1", "mlflow.trace.user": "ann"})
        root.set_outputs({"answer": "a platform"})
        return root.trace_id


@pytest.mark.parametrize("is_async", [True, False])
def test_an_agent_reads_back_as_it_was_traced(monkeypatch: pytest.MonkeyPatch, is_async: bool):
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", str(is_async).lower())
    trace_id = agent("What is MLflow?")
    trace = mlflow.get_trace(trace_id, flush=True)
    assert [span.name for span in trace.data.spans] == ["agent", "retrieve", "chat", "tool"]
    root, retrieve, chat, tool = trace.data.spans
    assert (root.inputs, root.outputs) == ({"question": "What is MLflow?"}, {"answer": "a platform"})
    assert retrieve.outputs == [{"page_content": "a platform", "metadata": {"doc": 1}}]
    assert (retrieve.parent_id, chat.parent_id, root.parent_id) == (root.span_id, root.span_id, None)
    assert [(event.name, event.attributes) for event in chat.events] == [("token", {"text": "é"})]
    assert (tool.status.status_code, root.span_type) == ("ERROR", SpanType.AGENT)
    info = trace.info
    assert (info.state, info.tags["team"], info.tags["mlflow.traceName"]) == ("OK", "search", "agent")
    assert (info.trace_metadata["mlflow.trace.session"], info.trace_metadata["mlflow.trace.user"]) == ("s1", "ann")
    assert info.token_usage == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert json.loads(info.request_preview) == {"question": "What is MLflow?"}
    assert info.execution_duration == pytest.approx((root.end_time_ns - root.start_time_ns) / 1e6, abs=1.5)


def test_feedback_is_given_overridden_and_taken_back():
    trace_id = agent("q")
    mlflow.flush_trace_async_logging()
    source = AssessmentSource("HUMAN", "ann")
    given = mlflow.log_feedback(trace_id=trace_id, name="good", value=True, source=source, rationale="it is", metadata={"k": "v"})
    expected = mlflow.log_expectation(trace_id=trace_id, name="answer", value={"words": ["a", "platform"]}, source=source)
    read = mlflow.get_trace(trace_id).info.assessments
    assert [(one.name, one.value) for one in read] == [("good", True), ("answer", {"words": ["a", "platform"]})]
    assert (read[0].rationale, read[0].metadata, read[0].source) == ("it is", {"k": "v"}, source)
    better = mlflow.override_feedback(trace_id=trace_id, assessment_id=given.assessment_id, value=False)
    assert mlflow.get_assessment(trace_id, given.assessment_id).valid is False
    mlflow.delete_assessment(trace_id, better.assessment_id)
    assert mlflow.get_assessment(trace_id, given.assessment_id).valid is True
    mlflow.update_assessment(trace_id, expected.assessment_id, Expectation(name="reply", value="short"))
    changed = mlflow.get_assessment(trace_id, expected.assessment_id)
    assert (changed.name, changed.value) == ("reply", "short")
    with pytest.raises(MlflowException, match="not found"):
        mlflow.get_assessment(trace_id, better.assessment_id)


def test_tags_and_deletion(client: MlflowClient, experiment: str):
    trace_ids = [agent(str(number)) for number in range(3)]
    mlflow.flush_trace_async_logging()
    client.set_trace_tag(trace_ids[0], "k", "v")
    assert client.get_trace(trace_ids[0]).info.tags["k"] == "v"
    client.delete_trace_tag(trace_ids[0], "k")
    assert "k" not in client.get_trace(trace_ids[0]).info.tags
    assert client.delete_traces(experiment, trace_ids=trace_ids[:1]) == 1
    assert client.delete_traces(experiment, max_timestamp_millis=2**41, max_traces=1) == 1
    assert client.delete_traces(experiment, max_timestamp_millis=2**41) == 1
    for trace_id in trace_ids:
        with pytest.raises(MlflowException, match="not found"):
            client.get_trace(trace_id)


@pytest.mark.parametrize("compression", ["none", "gzip", pytest.param("deflate", marks=pytest.mark.slow)])
def test_opentelemetrys_own_exporter(side: Side, client: MlflowClient, experiment: str, compression: str):
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = exporters.OTLPSpanExporter(
        f"{side.url}/v1/traces", headers={"x-mlflow-experiment-id": experiment}, compression=Compression(compression)
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("order", attributes={"session.id": "s", "items": [1, 2]}) as root:
        with tracer.start_as_current_span("pay"):
            pass
    assert provider.force_flush()
    provider.shutdown()
    trace = client.get_trace(f"tr-{root.get_span_context().trace_id:032x}")
    assert {span.name for span in trace.data.spans} == {"order", "pay"}
    assert (trace.info.tags["service.name"], trace.info.state) == ("shop", "OK")
    assert trace.info.trace_metadata["mlflow.trace.session"] == "s"
    assert trace.data.spans[0].get_attribute("items") == [1, 2]


def export(side: Side, experiment: str, trace: int, spans: list[dict]) -> None:
    """Sends spans, and retries until they are accepted, as exporters do."""
    whole = [{"traceId": f"{trace:032x}", "name": "s", "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000"} | span for span in spans]
    body = {"resourceSpans": [{"scopeSpans": [{"spans": whole}]}]}
    for _ in range(20):
        answer = requests.post(f"{side.url}/v1/traces", json=body, headers={"x-mlflow-experiment-id": experiment}, timeout=60)
        if answer.status_code == 200:
            return
        assert answer.status_code in (429, 503), answer.text
    raise AssertionError("the spans were never accepted")


def test_a_trace_of_ten_thousand_spans_comes_back_whole(side: Side, client: MlflowClient, experiment: str):
    trace = random.getrandbits(128)
    spans = [{"spanId": f"{number:016x}", "name": f"step {number}"} | ({"parentSpanId": f"{1:016x}"} if number > 1 else {}) for number in range(1, 10_001)]
    for start in range(0, len(spans), 1_000):
        export(side, experiment, trace, spans[start : start + 1_000])
    found = client.get_trace(f"tr-{trace:032x}").data.spans
    assert {span.name for span in found} == {f"step {number}" for number in range(1, 10_001)}
    assert client.delete_traces(experiment, trace_ids=[f"tr-{trace:032x}"]) == 1


@pytest.mark.slow
def test_a_payload_of_20_mb_comes_back_whole(side: Side, client: MlflowClient, experiment: str):
    trace = random.getrandbits(128)
    payload = random.Random(7).randbytes(10_000_000).hex()
    export(side, experiment, trace, [{"spanId": f"{1:016x}", "attributes": [{"key": "payload", "value": {"stringValue": payload}}]}])
    [span] = client.get_trace(f"tr-{trace:032x}").data.spans
    assert span.get_attribute("payload") == payload


def test_exporters_at_once_lose_no_span(side: Side, client: MlflowClient, experiment: str):
    """Checks that no span is lost while each exporter sends spans to its own trace and to a
    shared trace."""
    shared = random.getrandbits(128)
    own = [random.getrandbits(128) for _ in range(_EXPORTERS)]
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                span = {"spanId": f"{number * 100 + step + 1:016x}"}
                export(side, experiment, own[number], [span])
            export(side, experiment, shared, [{"spanId": f"{number + 1:016x}", "parentSpanId": "00000000000000ff"}])
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_EXPORTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for trace in own:
        assert len(client.get_trace(f"tr-{trace:032x}").data.spans) == 5
    assert len(client.get_trace(f"tr-{shared:032x}").data.spans) == _EXPORTERS
