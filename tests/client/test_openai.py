"""Tests of traces in the format of OpenAI autologging, with a model that is served by the test
process.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import mlflow
import pytest
from mlflow.entities import SpanType

from tests.support.model import played_model

if TYPE_CHECKING:
    import openai

#: test_same_traces.py makes the same calls, and compares the traces with stock MLflow.
pytestmark = pytest.mark.slow


@pytest.fixture
def model(experiment: str) -> Iterator["openai.OpenAI"]:
    """Yields a client of the model whose calls are traced. The package takes a second to import, so
    it is only imported here.
    """
    openai = pytest.importorskip("openai")
    mlflow.set_experiment(experiment_id=experiment)
    mlflow.openai.autolog()
    with played_model() as url, openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client
    mlflow.openai.autolog(disable=True)


def _ask(model: "openai.OpenAI", question: str, **more) -> object:
    return model.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": question}], **more)


def _last() -> mlflow.entities.Trace:
    return mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True)


def test_a_call_reads_back_as_it_was_made(model: "openai.OpenAI"):
    assert _ask(model, "What is MLflow?", temperature=0.5).choices[0].message.content == "a platform"
    trace = _last()
    [span] = trace.data.spans
    assert (span.name, span.span_type, span.status.status_code) == ("Completions", SpanType.CHAT_MODEL, "OK")
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "What is MLflow?"}], "temperature": 0.5}
    assert span.inputs == asked
    assert span.outputs["choices"][0]["message"]["content"] == "a platform"
    assert span.outputs["usage"]["total_tokens"] == 15
    usage = {"input_tokens": 11, "output_tokens": 4, "total_tokens": 15}
    assert (trace.info.token_usage, span.get_attribute("mlflow.chat.tokenUsage")) == (usage, usage)
    assert (trace.info.state, trace.info.tags["mlflow.traceName"]) == ("OK", "Completions")
    assert trace.info.request_preview == "What is MLflow?"


def test_an_agent_calls_a_tool_and_a_stream(model: "openai.OpenAI", experiment: str):
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}

    @mlflow.trace(span_type=SpanType.TOOL)
    def look_up(word: str) -> str:
        return f"{word} is a platform"

    @mlflow.trace(span_type=SpanType.AGENT)
    def agent(question: str) -> str:
        call = _ask(model, question, tools=[tool]).choices[0].message.tool_calls[0]
        found = look_up(**json.loads(call.function.arguments))
        return "".join(piece.choices[0].delta.content or "" for piece in _ask(model, found, stream=True))

    assert agent("What is MLflow?") == "a platform"
    trace = _last()
    root, *others = trace.data.spans
    kinds = [(span.name, span.span_type) for span in others]
    names = ("Completions", SpanType.CHAT_MODEL), ("look_up", SpanType.TOOL), ("Completions", SpanType.CHAT_MODEL)
    assert ([span.parent_id for span in others], kinds) == ([root.span_id] * 3, list(names))
    [call] = others[0].outputs["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], others[0].get_attribute("mlflow.chat.tools")[0]["function"]["name"]) == ("look_up", "look_up")
    assert len(others[2].events) == 3, "there must be one event for each chunk of the stream"
    found = mlflow.search_traces(
        locations=[experiment], filter_string="span.type = 'CHAT_MODEL' AND span.name = 'look_up'", return_type="list"
    )
    assert found == [], "both conditions must hold for the same span"
    found = mlflow.search_traces(locations=[experiment], filter_string="span.type = 'TOOL'", return_type="list")
    assert [one.info.trace_id for one in found] == [trace.info.trace_id]
    assert found[0].to_dict() == trace.to_dict()


def test_a_call_that_fails(model: "openai.OpenAI"):
    import openai

    with pytest.raises(openai.BadRequestError):
        _ask(model, "fail")
    trace = _last()
    [span] = trace.data.spans
    assert (trace.info.state, span.status.status_code) == ("ERROR", "ERROR")
    assert [event.name for event in span.events] == ["exception"]
