"""Exports of spans for recording how stock MLflow reads them: one of every kind, and random ones.

Each case has its own traces, one or two. Bodies are OTLP in JSON, or in protobuf converted from
that JSON if `protobuf` is set.
"""

import copy
import gzip
import json
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

START = 1_700_000_000_000_000_000
JSON_TYPE = "application/json"
PROTOBUF_TYPE = "application/x-protobuf"


@dataclass
class Case:
    """A case with its requests, which are sent sequentially."""

    name: str
    bodies: list[bytes]
    content_type: str | None = JSON_TYPE
    content_encoding: str | None = None
    traces: list[str] = field(default_factory=list)


def any_value(value: Any) -> dict[str, Any]:
    """Returns the OTLP JSON of an attribute's value."""
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
            return {"doubleValue": special.get(str(value), value)}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": attributes(value)}}
    raise TypeError(value)


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in values.items()]


def span(number: int, parent: int | None = None, /, **fields: Any) -> dict[str, Any]:
    """Returns a span of the case's trace. The trace's id is added later."""
    values = fields.pop("attributes", {})
    events = fields.pop("events", [])
    made = {
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "kind": 1,
        "startTimeUnixNano": str(START + number * 1_000_000),
        "endTimeUnixNano": str(START + number * 1_000_000 + 2_500_000_000),
        "attributes": attributes(values),
        "status": {"code": 1},
    }
    if parent is not None:
        made["parentSpanId"] = f"{parent:016x}"
    if events:
        made["events"] = [
            {"name": name, "timeUnixNano": str(START + place), "attributes": attributes(values)}
            for place, (name, values) in enumerate(events)
        ]
    return made | fields


def export(spans: list[dict[str, Any]], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    group: dict[str, Any] = {"scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}
    if resource is not None:
        group["resource"] = {"attributes": attributes(resource)}
    return {"resourceSpans": [group]}


def cases(number_of_random_ones: int, seed: int) -> list[Case]:
    made = [*_of_values(), *_of_shapes(), *_of_conventions(), *_of_usage(), *_of_previews(), *_of_tags()]
    made += _of_bodies()
    made += _random(random.Random(seed), number_of_random_ones)
    return made


def _case(name: str, *bodies: dict[str, Any], protobuf: bool = False) -> Case:
    trace = f"{zlib.crc32(name.encode()):08x}{0:08x}{zlib.adler32(name.encode()):016x}"
    bodies = copy.deepcopy(bodies)
    traces = {one.setdefault("traceId", trace).zfill(32): None for body in bodies for one in _spans(body)}
    if protobuf:
        return Case(name, [packed(body) for body in bodies], PROTOBUF_TYPE, traces=list(traces))
    return Case(name, [json.dumps(body).encode() for body in bodies], traces=list(traces))


def _spans(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for group in body["resourceSpans"]:
        for scope in group["scopeSpans"]:
            yield from scope["spans"]


def packed(body: dict[str, Any]) -> bytes:
    """Converts OTLP in JSON to protobuf."""
    request = ExportTraceServiceRequest()
    for group in body["resourceSpans"]:
        into = request.resource_spans.add()
        for item in group.get("resource", {}).get("attributes", []):
            _pack_value(into.resource.attributes.add(key=item["key"]).value, item["value"])
        for scope in group["scopeSpans"]:
            spans = into.scope_spans.add()
            for one in scope["spans"]:
                _pack_span(spans.spans.add(), one)
    return request.SerializeToString()


def _pack_span(into: Any, one: dict[str, Any]) -> None:
    into.trace_id = bytes.fromhex(one["traceId"])
    into.span_id = bytes.fromhex(one["spanId"])
    into.parent_span_id = bytes.fromhex(one.get("parentSpanId", ""))
    into.name = one.get("name", "")
    into.kind = one.get("kind", 0)
    into.start_time_unix_nano = int(one.get("startTimeUnixNano", 0))
    into.end_time_unix_nano = int(one.get("endTimeUnixNano", 0))
    for item in one.get("attributes", []):
        _pack_value(into.attributes.add(key=item["key"]).value, item["value"])
    for event in one.get("events", []):
        made = into.events.add(name=event["name"], time_unix_nano=int(event["timeUnixNano"]))
        for item in event["attributes"]:
            _pack_value(made.attributes.add(key=item["key"]).value, item["value"])
    for link in one.get("links", []):
        made = into.links.add(trace_id=bytes.fromhex(link["traceId"]), span_id=bytes.fromhex(link["spanId"]))
        for item in link.get("attributes", []):
            _pack_value(made.attributes.add(key=item["key"]).value, item["value"])
    status = one.get("status", {})
    if status:
        into.status.code = status.get("code", 0)
        into.status.message = status.get("message", "")


def _pack_value(into: AnyValue, value: dict[str, Any]) -> None:
    for kind, given in value.items():
        match kind:
            case "stringValue":
                into.string_value = given
            case "boolValue":
                into.bool_value = given
            case "intValue":
                into.int_value = int(given)
            case "doubleValue":
                into.double_value = float(given)
            case "bytesValue":
                into.bytes_value = bytes.fromhex(given)
            case "arrayValue":
                into.array_value.SetInParent()
                for item in given["values"]:
                    _pack_value(into.array_value.values.add(), item)
            case "kvlistValue":
                into.kvlist_value.SetInParent()
                for item in given["values"]:
                    _pack_value(into.kvlist_value.values.add(key=item["key"]).value, item["value"])


VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "false": False,
    "int": 42,
    "negative": -7,
    "largest": 2**63 - 1,
    "smallest": -(2**63),
    "float": 1.5,
    "whole float": 3.0,
    "tiny": 1e-7,
    "huge": 1e300,
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "text": "hello",
    "empty": "",
    "space": " ",
    "unicode": "größe 日本 😀 \u007f \u2028",
    "controls": "a\tb\nc\rd\u0001\u0008\u000c",
    "quotes": "it's \"quoted\" \\",
    "a digit": "1",
    "word null": "null",
    "word true": "true",
    "word NaN": "NaN",
    "json text": '"inner"',
    "json object": '{"a": 1, "b": [true, null, 1.0, 1e3, NaN]}',
    "json object, odd spaces": ' {"a":1 ,"a" : 2}\n',
    "json list": "[1, 2]",
    "json list, long": "[" + ", ".join(str(number) for number in range(30)) + "]",
    "not json": "{a: 1}",
    "json twice": '"{\\"a\\": 1}"',
    "json thrice": '"\\"{\\\\\\"a\\\\\\": 1}\\""',
    "escapes": '{"a": "\\u00e9\\ud83d\\ude00\\/"}',
    "list": [1, "two", 3.0, None, True, [], {}],
    "empty list": [],
    "empty object": {},
    "object": {"a": {"b": {"c": [1, {"d": "e"}]}}, "": "no key"},
    "deep": [[[[[[[[["deep"]]]]]]]]],
}


def _of_values() -> Iterator[Case]:
    yield _case("values", export([span(1, attributes=VALUES)]))
    yield _case("values in protobuf", export([span(1, attributes=VALUES)]), protobuf=True)
    yield _case("values in events", export([span(1, events=[("odd", VALUES), ("none", {})])]))
    # In protobuf, because MLflow decodes the ids of a link in JSON as base64 and loses the link.
    linked = span(1, links=[{"traceId": "12" * 16, "spanId": "34" * 8, "attributes": attributes(VALUES)}])
    yield _case("values in links", export([linked]), protobuf=True)
    data = {"bytesValue": b"\x00it's\n\\\xff\"".hex()}
    with_bytes = span(1)
    with_bytes["attributes"] = [
        {"key": "bytes", "value": data},
        {"key": "in list", "value": {"arrayValue": {"values": [data, {"bytesValue": ""}]}}},
    ]
    with_bytes["events"] = [
        {"name": "bytes", "timeUnixNano": "5", "attributes": [{"key": "bytes", "value": data}]}
    ]
    yield _case("bytes", export([with_bytes]), protobuf=True)
    halves = {"object": '{"a": "cut \\ud83d"}', "list": '["\\ude00"]', "text": '"\\ud83d\\ud83d\\ude00"'}
    yield _case("halves of surrogates", export([span(1, attributes=halves)]))
    twice = span(1)
    twice["attributes"] = attributes({"a": 1, "b": 2}) + attributes({"a": 3})
    yield _case("a key twice", export([twice]))
    yield _case("no key", export([span(1, attributes={"": "x"})]))
    yield _case("a request id of its own", export([span(1, attributes={"mlflow.traceRequestId": "tr-mine", "a": 1})]))
    many = {f"key {number}": f"value {number}" for number in range(200)}
    yield _case("many attributes", export([span(1, attributes=many)]))


def _of_shapes() -> Iterator[Case]:
    for code in range(4):
        status = {"code": code, "message": "why"}
        yield _case(f"status {code}", export([span(1, status=status)]), protobuf=True)
    yield _case("status by name", export([span(1, status={"code": "STATUS_CODE_ERROR"})]))
    bare = span(1)
    del bare["status"]
    yield _case("no status", export([bare]))
    yield _case("no name", export([span(1, name="")]))
    yield _case("children before the root", export([span(3, 2), span(2, 1), span(1)]))
    yield _case("no root", export([span(2, 1, status={"code": 2}), span(3, 2)]))
    yield _case("two roots", export([span(1, status={"code": 2}), span(2), span(3, 2)]))
    yield _case("parent of zeros", export([span(1, 0)]))
    yield _case("short ids", export([span(1, spanId="01", traceId="00aa")]), protobuf=True)
    yield _case("long ids with zeros", export([span(1, spanId="00" * 9 + "01")]), protobuf=True)
    yield _case("links", export([span(1, links=[{"traceId": "aa" * 16, "spanId": "bb" * 8}])]), protobuf=True)
    yield _case("links too long", export([span(1, links=[{"traceId": "aa" * 17, "spanId": "bb" * 9}])]), protobuf=True)
    yield _case("links too short", export([span(1, links=[{"traceId": "aa", "spanId": ""}])]), protobuf=True)
    yield _case("two exports", export([span(2, 1)]), export([span(1, status={"code": 2})]))
    changed = span(1, name="later", attributes={"b": 2}, status={"code": 2})
    yield _case("a span twice", export([span(1, attributes={"a": 1})]), export([changed]))
    same_start = [span(n, 1, startTimeUnixNano=str(START)) for n in (9, 4, 7)]
    yield _case("equal starts", export([*same_start, span(1)]))
    yield _case("names in snake case", {"resourceSpans": [{"scopeSpans": [{"spans": [_snake(span(1))]}]}]})
    yield _case("no end", export([span(1, endTimeUnixNano="0")]))
    yield _case("a child without an end", export([span(1), span(2, 1, endTimeUnixNano="0")]))
    yield _case("the end comes later", export([span(1, endTimeUnixNano="0")]), export([span(1)]))
    yield _case("an end before the start", export([span(1, endTimeUnixNano=str(START - 5_000_000))]))
    yield _case("no times", export([span(1, startTimeUnixNano="0", endTimeUnixNano="0")]))
    yield _case("the largest times", export([span(1, startTimeUnixNano=str(2**63 - 1), endTimeUnixNano=str(2**63 - 1))]))
    yield _case("a start too large", export([span(1, startTimeUnixNano=str(2**63))]))
    yield _case("an end too large", export([span(1, endTimeUnixNano=str(2**64 - 1))]))
    yield _case("names of services", export([span(1), span(2, 1)], {"service.name": "claude-code"}))
    yield _case("no names of services", export([span(1), span(2, 1)], {"service.name": "my-service"}))


def _snake(one: dict[str, Any]) -> dict[str, Any]:
    names = {"startTimeUnixNano": "start_time_unix_nano", "endTimeUnixNano": "end_time_unix_nano"}
    return {names.get(name, name): value for name, value in one.items()}


CONVENTIONS: dict[str, list[dict[str, Any]]] = {
    "open inference": [
        {
            "openinference.span.kind": "LLM",
            "llm.token_count.prompt": 10,
            "llm.token_count.completion": 5,
            "llm.token_count.total": 15,
            "llm.token_count.prompt_details.cache_read": 2,
            "llm.token_count.prompt_details.cache_write": 1,
            "input.value": '{"messages": [{"role": "user", "content": "Hi"}]}',
            "output.value": "Hello",
            "llm.model_name": "gpt-4o",
            "llm.provider": "openai",
        },
        {"openinference.span.kind": "CHAIN", "input.value": "", "output.value": "[]"},
        {"openinference.span.kind": "OTHER", "embedding.model_name": "text-embedding-3-small"},
    ],
    "generative ai": [
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "claude-3-5-sonnet-20241022",
            "gen_ai.response.model": "claude-3-5-sonnet-20241022",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 30,
            "gen_ai.usage.cache_creation.input_tokens": 40,
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Grüße"}]}]',
            "gen_ai.output.messages": '[{"role": "assistant", "parts": []}]',
            "gen_ai.tool.definitions": '[{"type": "function", "name": "add"}]',
            "gen_ai.conversation.id": "c-1",
        },
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.arguments": '{"a": 1}',
            "gen_ai.tool.call.result": "2",
            "gen_ai.usage.input_tokens": "7",
        },
        {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "nobody/knows"},
    ],
    "gemini": [
        {
            "gen_ai.agent.name": "gemini-cli",
            "gen_ai.operation.name": "llm_call",
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"text": "Größe"}]}]',
            "gen_ai.output.messages": '[{"role": "model", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}]',
        },
        {
            "gen_ai.agent.name": "gemini-cli",
            "gen_ai.operation.name": "system_prompt",
            "gen_ai.input.messages": "plain words",
            "gen_ai.output.messages": '{"candidates": []}',
        },
        {
            "gen_ai.agent.name": "gemini-cli",
            "gen_ai.operation.name": "tool_call",
            "gen_ai.input.messages": '{"contents": "x"}',
            "gen_ai.output.messages": "[1, 2]",
        },
    ],
    "claude code": [
        {"span.type": "claude_code.interaction", "user_prompt": "Fix it", "new_context": "context"},
        {
            "span.type": "llm_request",
            "input_tokens": 5,
            "output_tokens": "6",
            "cache_read_tokens": 100,
            "cache_creation_tokens": 10,
            "new_context": "<REDACTED>",
            "response.model_output": "done",
        },
        {"span.type": "claude_code.tool", "full_command": "ls -l", "file_path": "größe.txt", "new_context": "result"},
        {"span.type": "tool", "tool_input": '{"path": "a"}'},
        {"span.type": "claude_code.other", "user_prompt": "x"},
    ],
    "traceloop": [
        {
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": '{"inputs": {"q": 1}}',
            "traceloop.entity.output": '{"outputs": 2}',
        },
        {
            "gen_ai.system": "openai",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Why?",
            "gen_ai.completion.0.content": "Because.",
            "gen_ai.usage.prompt_tokens": 3,
            "gen_ai.usage.completion_tokens": 4,
            "llm.usage.total_tokens": 7,
        },
        {"traceloop.span.kind": "tool", "gen_ai.completion.0.tool_calls.1.arguments": '{"x": 1}'},
    ],
    "vercel": [
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": '[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]',
            "ai.prompt.tools": ['{"type": "function", "name": "weather"}', "no json"],
            "ai.prompt.toolChoice": '{"type": "auto"}',
            "ai.response.text": "Hello",
            "ai.response.finishReason": "stop",
            "gen_ai.usage.input_tokens": 9,
            "gen_ai.usage.output_tokens": 8,
            "gen_ai.request.model": "gpt-4o-mini",
        },
        {"ai.operationId": "ai.toolCall", "ai.toolCall.args": '{"city": "Köln"}', "ai.toolCall.result": '{"t": 20}'},
        {"ai.operationId": "ai.embed", "ai.value": "words", "ai.embedding": [0.1, 0.2]},
        {"ai.operationId": "ai.streamText.doStream"},
    ],
    "voltagent": [
        {"entity.type": "agent", "agent.messages": '[{"role": "user", "content": "Hi"}]', "output": "Bye"},
        {
            "entity.type": "agent",
            "span.type": "llm",
            "voltagent.operation_id": "1",
            "llm.messages": "[]",
            "input": "in",
            "llm.usage.prompt_tokens": 1,
            "usage.completion_tokens": 2,
        },
    ],
    "livekit": [
        {"lk.agent_name": "voice", "lk.user_input": "Hello"},
        {"lk.function_tool.name": "lookup", "lk.response.function_calls": "[1]"},
        {"lk.tts.voice": "x", "lk.input_text": "say"},
        {"lk.retry_count": 0, "lk.response.text": "text"},
        {"gen_ai.operation.name": "Chat", "lk.chat_ctx": '{"items": []}'},
    ],
    "laminar": [{"lmnr.span.type": "EXECUTOR", "lmnr.span.input": "in", "lmnr.span.output": "out"}],
    "langfuse": [
        {"langfuse.observation.type": "generation", "langfuse.observation.input": '{"model": "gpt-4o", "x": 1}'},
        {"langfuse.observation.type": "span", "langfuse.observation.output": "out"},
    ],
    "adk": [
        {"gcp.vertex.agent.llm_request": '{"model": "gemini-2.0-flash"}', "gcp.vertex.agent.llm_response": "{}"},
        {"gcp.vertex.agent.tool_call_args": '{"a": 1}', "gcp.vertex.agent.tool_response": "[]"},
    ],
    "mlflow": [
        {
            "mlflow.spanType": "CHAT_MODEL",
            "mlflow.spanInputs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hi"}]},
            "mlflow.spanOutputs": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
            "mlflow.chat.tokenUsage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
            "mlflow.message.format": "openai",
        },
        {"mlflow.spanType": '"LLM"', "mlflow.spanInputs": '{"a": 1}'},
        {"mlflow.spanType": "UNKNOWN", "openinference.span.kind": "TOOL"},
        {"mlflow.spanType": "MY_TYPE", "openinference.span.kind": "TOOL"},
        {"mlflow.spanType": None, "traceloop.span.kind": "task"},
        {"mlflow.spanOutputs": {"model": "gpt-4o"}, "mlflow.spanInputs": {"model": 5}},
    ],
}


def _of_conventions() -> Iterator[Case]:
    for name, spans in CONVENTIONS.items():
        made = [span(1, attributes=spans[0])]
        made += [span(number, 1, attributes=given) for number, given in enumerate(spans[1:], 2)]
        yield _case(f"convention {name}", export(made))
    events: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "spring": [
            ("gen_ai.content.prompt", {"gen_ai.prompt": "Tell me a joke"}),
            ("gen_ai.content.completion", {"gen_ai.completion": "No."}),
        ],
        "spring with lists": [("gen_ai.content.prompt", {"gen_ai.prompt": ["a", "b"]})],
        "messages": [
            ("gen_ai.system.message", {"content": "Be kind"}),
            ("gen_ai.user.message", {"content": '{"text": "Grüße"}'}),
            ("gen_ai.assistant.message", {"content": ""}),
            ("gen_ai.choice", {"content": "Hello", "role": '"bot"'}),
            ("gen_ai.choice", {"content": "again"}),
        ],
        "claude code": [("tool.output", {"output": "<REDACTED>", "content": '{"lines": "größer"}'})],
    }
    for name, given in events.items():
        values = {"span.type": "tool"} if name == "claude code" else {"gen_ai.operation.name": "chat"}
        # Not on the root span, because MLflow fails to create a preview from a list.
        yield _case(f"events {name}", export([span(1), span(2, 1, attributes=values, events=given)]))


def _usage(given: int, made: int, **others: int) -> dict[str, Any]:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made, **others}


def _of_usage() -> Iterator[Case]:
    def counted(number: int, parent: int | None, usage: Any, **others: Any) -> dict[str, Any]:
        return span(number, parent, attributes={"mlflow.chat.tokenUsage": usage, **others})

    tree = [span(1), counted(2, 1, _usage(1, 2)), counted(3, 2, _usage(10, 20)), counted(4, 1, _usage(100, 200))]
    yield _case("usage in a tree", export(tree))
    yield _case("usage without a root", export(tree[1:]))
    yield _case("usage in two exports", export(tree[2:]), export(tree[:2]))
    yield _case("usage, parent last", export([tree[2]]), export([tree[3]]), export([tree[1]]), export([tree[0]]))
    cached = _usage(100, 10, cache_read_input_tokens=20, cache_creation_input_tokens=30)
    yield _case("usage with caches", export([counted(1, None, cached, **{"mlflow.llm.model": "claude-sonnet-4-5"})]))
    hour = cached | {"cache_creation_input_tokens_above_1hr": 12}
    yield _case("usage with an hour", export([counted(1, None, hour, **{"mlflow.llm.model": "claude-sonnet-4-5"})]))
    yield _case("usage that is odd", export([counted(1, None, {"total_tokens": 3.0, "other": 1}), counted(2, 1, [1])]))
    yield _case("usage of fractions", export([counted(1, None, {"input_tokens": 1.5, "output_tokens": 2})]))
    costs = {"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3}
    given = [span(1), *(span(n, 1, attributes={"mlflow.llm.cost": costs}) for n in (2, 3, 4))]
    yield _case("cost given", export(given))
    models = ["gpt-4o", "openai/gpt-4o-mini", "databricks-claude-3-7-sonnet", "gateway:/x", "unknown", "dall-e-3", "azure/gpt-4"]
    models += ["gpt-3.5-turbo", "gemini-2.0-flash", "o1", "text-embedding-3-large", "claude-3-haiku-20240307"]
    for provider in [None, "openai", "Azure", "bedrock", "nobody", "anthropic"]:
        others = {} if provider is None else {"mlflow.llm.provider": provider}
        made = [
            counted(number, 1, _usage(number * 7, number * 11), **{"mlflow.llm.model": model}, **others)
            for number, model in enumerate(models, 2)
        ]
        yield _case(f"models of {provider}", export([span(1), *made]))


def _of_previews() -> Iterator[Case]:
    long = "word " * 300
    values = {
        "text": ("Hello", "Bye"),
        "long": (long, "größe" * 300),
        "exactly": ("x" * 998, "x" * 999),
        "object": ({"question": "größer?"}, {"answer": 1}),
        "messages": (
            {"messages": [{"role": "user", "content": "first"}, {"role": "user", "content": "second"}, {"role": "x", "content": "y"}]},
            {"choices": [{"message": {"role": "assistant", "content": "answer"}}]},
        ),
        "parts": (
            {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "of a part"}]}]},
            {"output": [{"role": "assistant", "content": [{"type": "output_text", "text": "out"}]}]},
        ),
        "none from the role": ({"messages": [{"role": "tool", "content": "t"}]}, {"messages": [{"role": "user", "content": "u"}]}),
        "without content": ({"messages": [{"role": "user", "content": None}]}, {"messages": [{"no": "role"}]}),
        "responses": ({"input": [{"role": "user", "content": "in"}]}, {"output": [{"type": "x"}]}),
        "request": ({"request": {"input": [{"role": "user", "content": "inner"}]}}, {"request": 5}),
        "odd content": ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "fine"),
        "list": ([1, 2], [{"role": "user", "content": "x"}]),
        "empty": ("", {}),
        "number": (5, 1.5),
    }
    for name, (given, made) in values.items():
        root = span(1, attributes={"mlflow.spanInputs": given, "mlflow.spanOutputs": made})
        yield _case(f"preview {name}", export([root]))


def _of_tags() -> Iterator[Case]:
    resource = {
        "service.name": "shop",
        "telemetry.sdk.language": "python",
        "mlflow.trace.spansLocation": "X",
        "number": 5,
        "flag": True,
        "float": 1.0,
        "list": ["a", "größe"],
        "object": {"a": 1},
        "none": None,
        "bad key!": "x",
        "../up": "x",
        "k" * 251: "x",
        "long": "v" * 9000,
    }
    yield _case("tags of a resource", export([span(1)], resource))
    own = {
        "mlflow.traceTag.team": "search",
        "mlflow.traceTag.number": 5,
        "mlflow.traceTag.bad key!": "x",
        "mlflow.traceTag.service.name": "mine",
        "mlflow.traceTag.mlflow.traceName": "my trace",
        "mlflow.traceTag.long": "v" * 9000,
        "user.id": "me",
        "session.id": "s-1",
    }
    yield _case("tags of the root", export([span(1, attributes=own), span(2, 1, attributes={"mlflow.traceTag.no": "x"})], resource))
    yield _case("numbers for session and user", export([span(1, attributes={"user.id": 5, "session.id": 7})]))
    yield _case("the first session", export([span(1), span(2, 1, attributes={"session.id": "a"}), span(3, 1, attributes={"session.id": "b"})]))
    yield _case("empty session and user", export([span(1, attributes={"user.id": "", "session.id": ""}), span(2, 1, attributes={"user.id": "u", "session.id": "s"})]))
    yield _case("session too long", export([span(1, attributes={"session.id": "s" * 251})]))
    yield _case("name too long", export([span(1, attributes={"mlflow.traceTag.mlflow.traceName": "n" * 5000})]))


def _of_bodies() -> Iterator[Case]:
    whole = json.dumps(export([span(1, traceId="ab" * 16)])).encode()
    trace = ["ab" * 16]
    yield Case("gzip", [gzip.compress(whole)], content_encoding="gzip", traces=trace)
    yield Case("deflate", [zlib.compress(whole)], content_encoding="Deflate", traces=trace)
    raw = zlib.compressobj(wbits=-15)
    yield Case("raw deflate", [raw.compress(whole) + raw.flush()], content_encoding="deflate", traces=trace)
    yield Case("two gzip members", [gzip.compress(whole[:50]) + gzip.compress(whole[50:])], content_encoding="gzip", traces=trace)
    yield Case("gzip cut off", [gzip.compress(whole)[:-9]], content_encoding="gzip")
    yield Case("gzip with more", [gzip.compress(whole) + b"more"], content_encoding="gzip")
    yield Case("no gzip", [whole], content_encoding="gzip")
    yield Case("empty gzip", [b""], content_encoding="gzip")
    yield Case("no deflate", [whole], content_encoding="deflate")
    yield Case("deflate cut off", [zlib.compress(whole)[:-5]], content_encoding="deflate")
    yield Case("identity", [whole], content_encoding="identity")
    yield Case("no content type", [whole], None)
    yield Case("odd content type", [whole], "text/json; charset=utf-8")
    yield Case("content type with charset", [whole], "application/json; charset=utf-8", traces=trace)
    yield Case("empty protobuf", [b""], PROTOBUF_TYPE)
    yield Case("odd protobuf", [b"\xff\xff\xff"], PROTOBUF_TYPE)
    yield Case("invalid text in protobuf", [packed({"resourceSpans": [{"scopeSpans": [{"spans": [span(1, traceId="ab" * 16, name="XXXX")]}]}]}).replace(b"XXXX", b"\xff\xfe\xfd\xfc")], PROTOBUF_TYPE)
    bodies = {
        "no json": b"{",
        "empty object": b"{}",
        "no spans": b'{"resourceSpans": []}',
        "only a resource": b'{"resourceSpans": [{"resource": {"attributes": []}}]}',
        "unknown fields": b'{"resourceSpans": [{"unknown": 1, "scopeSpans": [{"spans": []}]}], "more": {}}',
        "null fields": b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "01", "spanId": "02", "attributes": null, "name": null}]}]}]}',
        "latin 1": '{"ä": 1}'.encode("latin-1"),
    }
    for name, body in bodies.items():
        yield Case(f"json {name}", [body], traces=["01".zfill(32)] if name == "null fields" else [])
    wrong: dict[str, dict[str, Any]] = {
        "no trace id": {"traceId": ""},
        "no span id": {"spanId": ""},
        "odd hex": {"spanId": "abc"},
        "no hex": {"spanId": "xyzx"},
        "long trace id": {"traceId": "11" * 17},
        "long span id": {"spanId": "11" * 9},
        "number for a name": {"name": 5},
        "text for a time": {"startTimeUnixNano": "soon"},
        "negative time": {"startTimeUnixNano": "-1"},
        "two values": {"attributes": [{"key": "a", "value": {"stringValue": "a", "intValue": 1}}]},
        "odd value": {"attributes": [{"key": "a", "value": {"intValue": "1.5"}}]},
        "number for an attribute": {"attributes": [5]},
        "too deep": {"attributes": attributes({"a": _nested(60)})},
    }
    for name, fields in wrong.items():
        yield Case(f"json {name}", [json.dumps(export([{**span(1, traceId="cd" * 16), **fields}])).encode()])
    right: dict[str, dict[str, Any]] = {
        "number for a time": {"startTimeUnixNano": START, "endTimeUnixNano": float(START)},
        "unknown status": {"status": {"code": "STATUS_CODE_ODD", "message": "x"}},
        "upper case ids": {"spanId": "ABCDEF0123456789"},
        "numbers as texts": {"attributes": [{"key": "a", "value": {"doubleValue": "1.5"}}, {"key": "b", "value": {"intValue": 5.0}}]},
        "bytes in base64": {"attributes": [{"key": "a", "value": {"bytesValue": "AAH/"}}, {"key": "b", "value": {"bytesValue": "_-8"}}]},
        "snake case values": {"attributes": [{"key": "a", "value": {"string_value": "x"}}]},
        "deep": {"attributes": attributes({"a": _nested(25)})},
    }
    for name, fields in right.items():
        yield _case(f"json {name}", export([{**span(1), **fields}]))


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _random(randomness: random.Random, count: int) -> Iterator[Case]:
    """Yields spans that mix the conventions, with values of any type where a convention has one
    type.
    """
    known = [spans for spans in CONVENTIONS.values()]
    pool = [(key, value) for spans in known for given in spans for key, value in given.items()]
    keys = [key for key, _ in pool]
    # Without numbers that MLflow cannot convert for usage.
    odd = [value for name, value in VALUES.items() if name not in ("infinity", "minus infinity", "nan", "huge")]
    for number in range(count):
        spans = []
        for one in range(1, randomness.randint(2, 5)):
            given = dict(randomness.sample(pool, randomness.randint(0, 12)))
            for key in randomness.sample(keys, randomness.randint(0, 3)):
                if not key.startswith(("mlflow.spanType", "mlflow.chat", "ai.prompt.tools")) and not _is_kind(key):
                    given[key] = randomness.choice(odd)
            parent = randomness.choice([None, *range(1, one)]) if one > 1 else None
            status = {"code": randomness.randint(0, 2), "message": randomness.choice(["", "why"])}
            events = [_random_event(randomness, odd) for _ in range(randomness.choice([0, 0, 1, 3]))]
            # Not on the root span, because MLflow fails to create a preview from the list of an
            # event.
            if any(event == "gen_ai.content.prompt" or event == "gen_ai.content.completion" for event, _ in events):
                parent = parent or 9
            spans.append(span(one, parent, attributes=given, status=status, events=events))
        randomness.shuffle(spans)
        resource = dict(randomness.sample(list(VALUES.items()), 3)) if randomness.random() < 0.3 else None
        name = f"random {randomness.random()}"
        if len(spans) > 1 and randomness.random() < 0.2:
            yield _case(name, export(spans[1:], resource), export(spans[:1]))
        else:
            yield _case(name, export(spans, resource), protobuf=randomness.random() < 0.5)


def _random_event(randomness: random.Random, odd: list[Any]) -> tuple[str, dict[str, Any]]:
    names = ["gen_ai.content.prompt", "gen_ai.content.completion", "gen_ai.system.message", "gen_ai.user.message"]
    names += ["gen_ai.assistant.message", "gen_ai.choice", "tool.output", "exception"]
    keys = ["gen_ai.prompt", "gen_ai.completion", "content", "role", "output", "diff", "other"]
    words = [*odd, "words", '{"a": "ü"}', "<REDACTED>"]
    chosen = randomness.sample(keys, randomness.randint(0, 4))
    return randomness.choice(names), {key: randomness.choice(words) for key in chosen}


def _is_kind(key: str) -> bool:
    """Returns whether the attribute must be a string, because MLflow fails for kinds of other
    types.
    """
    kinds = ("kind", "operation.name", "operationId", "span.type", "entity.type", "observation.type", "session", "conversation")
    return key.endswith(kinds) or "conversation" in key
