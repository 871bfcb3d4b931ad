"""Compares all attributes of traces with stock MLflow: traces that the stock client creates,
exports, assesses and evaluates.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Expectation, Feedback, SpanEvent, SpanType
from mlflow.exceptions import MlflowException

from tests.client.both import Both, found_by, whole
from tests.compare import span_cases
from tests.support.model import played_model

_USAGE = {"input_tokens": 1200, "output_tokens": 340, "total_tokens": 1540}


@mlflow.trace(span_type=SpanType.RETRIEVER, attributes={"index": "docs"})
def _retrieve(question: str, top: int = 2) -> list[dict]:
    return [{"page_content": f"Grüße 🙂 {question}", "metadata": {"doc": number}} for number in range(top)]


@mlflow.trace(name="stream", output_reducer="".join)
def _stream() -> Iterator[str]:
    yield from ("a ", "platform")


@mlflow.trace
async def _wait(seconds: float) -> float:
    return seconds


@mlflow.trace(span_type=SpanType.TOOL)
def _divide(by: int) -> float:
    return 1 / by


def _agent(question: str, session: str | None = None) -> str:
    """Creates a trace with several steps, one of which fails and is handled. Returns the trace's
    id.
    """
    with mlflow.start_span("agent", span_type=SpanType.AGENT, attributes={"version": 3, "share": 0.5, "tags": ["a", "é"], "none": None}) as root:
        root.set_inputs({"question": question, "history": [{"role": "user", "content": "Hello"}]})
        _retrieve(question)
        with mlflow.start_span("chat", span_type=SpanType.CHAT_MODEL) as span:
            span.set_inputs([{"role": "user", "content": question}])
            span.set_attributes({"mlflow.chat.tokenUsage": _USAGE, "mlflow.llm.model": "gpt-4o-mini", "nested": {"a": [1, {"b": None}]}})
            span.add_event(SpanEvent("token", attributes={"text": "é", "place": 1, "sure": True}))
            span.set_outputs({"choices": [{"text": "x" * 3000}]})
        try:
            _divide(0)
        except ZeroDivisionError:
            root.add_event(SpanEvent("recovered"))
        list(_stream())
        asyncio.run(_wait(0.5))
        mlflow.update_current_trace(
            tags={"team": "search", "leer": "é"}, metadata={"build": "7"}, client_request_id=f"of {question}", session_id=session, user="ann"
        )
        root.set_outputs({"answer": "a platform", "score": 0.1, "big": 2**60})
        return root.trace_id


@pytest.mark.parametrize("is_async", [pytest.param(False, marks=pytest.mark.slow), True], ids=["sync", "async"])
def test_an_agent_of_several_steps(both: Both, monkeypatch: pytest.MonkeyPatch, is_async: bool):
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", str(is_async).lower())

    def program(experiment: str) -> Any:
        ids = [_agent("What is MLflow?", "s1"), _agent("And Rust?", "s2"), _agent("Nobody's")]
        with mlflow.start_run(run_name="the run") as run:
            ids.append(_agent("And then?", "s1"))
        with pytest.raises(ZeroDivisionError):
            _divide(0)
        mlflow.flush_trace_async_logging()
        client = MlflowClient()
        client.set_trace_tag(ids[0], "team", "chat")
        client.delete_trace_tag(ids[1], "leer")
        texts = ["status = 'ERROR'", "tags.team = 'search'", "metadata.`mlflow.trace.session` = 's1'", "metadata.`mlflow.trace.user` = 'ann'"]
        texts += ["span.type = 'TOOL' AND span.status = 'ERROR'", "trace.text LIKE '%Grüße%Rust%'", "name = 'agent'", "metadata.build = '7'"]
        of_run = mlflow.search_traces(locations=[experiment], run_id=run.info.run_id, return_type="list")
        return found_by(experiment, *texts), [trace.info.trace_id for trace in of_run]

    both.compare(f"agent, {'async' if is_async else 'sync'}", program)


def test_calls_of_a_model_by_openais_client(both: Both):
    openai = pytest.importorskip("openai")
    tool = {"type": "function", "function": {"name": "look_up", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}}

    def program(experiment: str) -> Any:
        def ask(question: str, **more: Any) -> Any:
            messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": question}]
            return model.chat.completions.create(model="gpt-4o-mini", messages=messages, **more)

        @mlflow.trace(span_type=SpanType.AGENT)
        def agent(question: str) -> str:
            call = ask(question, tools=[tool], tool_choice="auto").choices[0].message.tool_calls[0]
            pieces = ask(call.function.arguments, stream=True, stream_options={"include_usage": True})
            return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)

        mlflow.openai.autolog()
        ask("What is MLflow?", temperature=0.5, max_tokens=100)
        list(ask("Piece by piece", stream=True))
        with mlflow.start_run(run_name="the run"):
            agent("What is MLflow?")
        with pytest.raises(openai.BadRequestError):
            ask("fail")
        mlflow.openai.autolog(disable=True)
        mlflow.flush_trace_async_logging()
        texts = ["span.type = 'CHAT_MODEL'", "status = 'ERROR'", "span.attributes.model = 'gpt-4o-mini'", "trace.text LIKE '%Finds.%'"]
        return found_by(experiment, *texts)

    with played_model() as url, openai.OpenAI(base_url=url, api_key="none", max_retries=0) as model:
        both.compare("openai", program)


#: Each encoding is tested with a trace of its own.
_ENCODINGS = {"none": lambda body: body, "gzip": gzip.compress, "deflate": zlib.compress}
_MESSAGES = [{"role": "user", "content": "What is MLflow?"}]


@pytest.mark.parametrize(
    ("at_once", "compressions"),
    [
        pytest.param(True, ["gzip"], id="at once"),
        pytest.param(True, ["none", "deflate", "gzip"], id="at once, however packed", marks=pytest.mark.slow),
        pytest.param(False, ["none", "deflate", "gzip"], id="span by span", marks=pytest.mark.slow),
    ],
)
def test_spans_of_opentelemetrys_sdk(both: Both, at_once: bool, compressions: list[str]):
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    def program(experiment: str) -> Any:
        for compression in map(Compression, compressions):
            url, headers = f"{mlflow.get_tracking_uri()}/v1/traces", {"x-mlflow-experiment-id": experiment}
            exporter = exporters.OTLPSpanExporter(url, headers=headers, compression=compression)
            provider = TracerProvider(resource=Resource.create({"service.name": "shop", "deployment.environment": "test"}))
            provider.add_span_processor((BatchSpanProcessor if at_once else SimpleSpanProcessor)(exporter))
            tracer = provider.get_tracer("shop.orders", "1.2")
            values = {"session.id": "s", "user.id": "ann", "items": [1, 2], "share": 0.5, "paid": True, "name": "é", "none": []}
            with tracer.start_as_current_span("order", kind=SpanKind.SERVER, attributes=values) as root:
                asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini", "gen_ai.system": "openai"}
                used = {"gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 340, "gen_ai.input.messages": json.dumps(_MESSAGES)}
                with tracer.start_as_current_span("chat gpt-4o-mini", kind=SpanKind.CLIENT, attributes=asked | used) as chat:
                    chat.add_event("gen_ai.choice", {"finish_reason": "stop", "index": 0})
                    chat.set_status(Status(StatusCode.OK))
                with pytest.raises(LookupError), tracer.start_as_current_span("pay", links=[Link(chat.get_span_context(), {"why": "asked"})]):
                    raise LookupError("no card")
                root.set_status(Status(StatusCode.ERROR, "not paid"))
            assert provider.force_flush()
            provider.shutdown()
        return found_by(experiment, "status = 'ERROR'", "span.name = 'pay'", "metadata.`mlflow.trace.session` = 's'", "tags.`service.name` = 'shop'")

    both.compare(f"opentelemetry, {at_once}, {len(compressions)}", program)


@pytest.mark.parametrize("content_type", [span_cases.JSON_TYPE, span_cases.PROTOBUF_TYPE], ids=["json", "protobuf"])
def test_exports_by_http(both: Both, content_type: str):
    def exports(trace: str) -> Iterator[dict]:
        root = {"span.kind": "server", "mlflow.spanInputs": '{"q": 1}', "mlflow.spanOutputs": '"a"', "mlflow.traceTag.team": "x", "list": [1, "a", None], "map": {"a": {"b": 0.5}}}
        usage = {"mlflow.chat.tokenUsage": json.dumps(_USAGE), "mlflow.llm.model": "gpt-4o-mini"}
        first = [span_cases.span(1, attributes=root, traceId=trace), span_cases.span(2, 1, attributes=usage, events=[("e", {"a": True})], traceId=trace)]
        yield span_cases.export(first, {"service.name": "shop"})
        failed: dict[str, Any] = {"status": {"code": 2, "message": "m"}, "traceState": "a=b"}
        if content_type == span_cases.PROTOBUF_TYPE:
            # Only in protobuf, because in JSON stock MLflow decodes the ids of a link as base64 and
            # loses it.
            failed["links"] = [{"traceId": trace, "spanId": f"{1:016x}"}]
        # A second export, with a new span and an existing one.
        yield span_cases.export([span_cases.span(3, 2, traceId=trace, **failed), span_cases.span(2, 1, name="again", traceId=trace)])

    def program(experiment: str) -> Any:
        answers = []
        for number, (encoding, encode) in enumerate(_ENCODINGS.items()):
            headers = {"x-mlflow-experiment-id": experiment, "content-type": content_type}
            headers |= {"content-encoding": encoding} if encoding != "none" else {}
            for export in exports(f"{zlib.crc32(content_type.encode()):08x}{number:024x}"):
                body = json.dumps(export).encode() if content_type == span_cases.JSON_TYPE else span_cases.packed(export)
                answer = requests.post(f"{mlflow.get_tracking_uri()}/v1/traces", data=encode(body), headers=headers, timeout=60)
                # Stock MLflow 3.17.2 responds to JSON with protobuf.
                said = [answer.headers.get("content-type"), answer.content] if content_type == span_cases.PROTOBUF_TYPE else []
                answers.append([answer.status_code, *said])
        return answers, found_by(experiment, "tags.team = 'x'", "span.name = 'again'", "trace.text LIKE '%again%'")

    both.compare(f"otlp, {content_type}", program)


def test_feedback_and_expectations_from_their_beginning_to_their_end(both: Both, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    ann, judge = AssessmentSource("HUMAN", "ann"), AssessmentSource("LLM_JUDGE", "gpt-4o")
    values = [True, 5, 0.5, "good", ["a", 1, None], {"a": {"b": 1.5}}, None]

    def program(experiment: str) -> Any:
        trace_id, other = _agent("What is MLflow?", "s1"), _agent("And Rust?")
        span_id = mlflow.get_trace(trace_id).data.spans[1].span_id
        steps: list[Any] = []

        def step(*returned: Any) -> None:
            trace = mlflow.get_trace(trace_id)
            valid = [found.name for found in trace.search_assessments()]
            steps.append([[one.to_dictionary() for one in returned], whole(trace)["row"]["assessments"], valid])

        given = [mlflow.log_feedback(trace_id=trace_id, name=f"feedback {number}", value=value, source=ann) for number, value in enumerate(values)]
        given += [mlflow.log_expectation(trace_id=trace_id, name=f"expectation {number}", value=value, source=ann) for number, value in enumerate(values[:-1])]
        given.append(mlflow.log_feedback(trace_id=trace_id, value=1, source=judge, rationale="because", metadata={"k": "v"}, span_id=span_id))
        given.append(mlflow.log_feedback(trace_id=trace_id, name="failed", error=ValueError("no judge"), source=judge))
        step(*given)
        better = mlflow.override_feedback(trace_id=trace_id, assessment_id=given[0].assessment_id, value=False, rationale="it is not", source=judge, metadata={"of": "ann"})
        best = mlflow.override_feedback(trace_id=trace_id, assessment_id=better.assessment_id, value="perhaps")
        step(better, best)
        mlflow.delete_assessment(trace_id, best.assessment_id)
        mlflow.delete_assessment(trace_id, given[2].assessment_id)
        step(mlflow.get_assessment(trace_id, better.assessment_id))
        expected, judged = given[len(values)], given[1]
        changed = mlflow.update_assessment(trace_id, expected.assessment_id, Expectation(name="answer", value={"words": ["a"]}, metadata={"new": "yes"}))
        rated = mlflow.update_assessment(trace_id, judged.assessment_id, Feedback(name="quality", value=4.5, rationale="better"))
        step(changed, rated, mlflow.get_assessment(trace_id, expected.assessment_id))
        mlflow.log_feedback(trace_id=other, name="quality", value=1)
        refused = []
        for attempt in (
            lambda: mlflow.get_assessment(trace_id, best.assessment_id),
            lambda: mlflow.delete_assessment(other, judged.assessment_id),
            lambda: mlflow.override_feedback(trace_id=trace_id, assessment_id=best.assessment_id, value=1),
            lambda: mlflow.log_feedback(trace_id="tr-0", name="quality", value=1),
        ):
            try:
                refused.append(str(attempt()))
            except MlflowException as error:
                refused.append([error.error_code, error.message])
        texts = ["feedback.quality > 3", "feedback.quality IS NOT NULL", "feedback.`feedback 3` = 'good'", "expectation.answer IS NOT NULL", "feedback.failed IS NULL"]
        return steps, refused, found_by(experiment, *texts)

    both.compare("assessments", program)
