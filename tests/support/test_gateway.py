"""Tests of the gateway, which has to behave like API Gateway: events, routes, responses and limits.
"""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Barrier, Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.support.gateway import Gateway, Limits, find_route, read_routes
from tests.support.http_server import Answer, Received, serving
from tests.support.runtime_api import EventTooLong, FunctionFailed

_REPOSITORY = Path(__file__).resolve().parents[2]
_ROUTES = [("$default", "rest"), ("/a/{proxy+}", "a"), ("/a/b/{proxy+}", "ab"), ("/a/b/c", "abc"), ("/", "page")]
_HELLO = {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": "hello", "isBase64Encoded": False}


class Fake:
    """A function that records events, and returns the same result for each."""

    def __init__(self, answered: Any = _HELLO):
        self.answered = answered
        self.events: list[dict] = []

    def invoke(self, event: dict) -> Any:
        # Serialized and parsed, as it reaches a function.
        self.events.append(json.loads(json.dumps(event)))
        if isinstance(self.answered, Exception):
            raise self.answered
        return self.answered


def _event(target: str, method: str = "GET", headers: list[tuple[str, str]] = [], body: bytes = b"", **options: Any) -> dict:
    """Returns the event that a function receives for a request."""
    function = Fake()
    gateway = Gateway([("$default", "f")], {"f": function}, **options)
    status, _, said = gateway.answer(Received(method, target, headers, body))
    assert (status, said) == (200, b"hello")
    [event] = function.events
    return event


def _answer(answered: Any) -> Answer:
    """Returns the response that a client receives for a function's result."""
    return Gateway([("$default", "f")], {"f": Fake(answered)}).answer(Received("GET", "/", []))


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a%2Fb", "/a/b"),
        ("/a%20b+c", "/a b+c"),
        ("/100%25", "/100%"),
        ("/a%252Fb", "/a%2Fb"),
        ("/gr%C3%B6%C3%9Fe/%C3%A9", "/größe/é"),
        ("/a%3Fb%23c?d", "/a?b#c"),
        ("/%F0%9F%8E%89", "/🎉"),
        ("/a//b/../c/.", "/a//b/../c/."),
        ("/%FF", "/\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_paths_are_decoded_once(target: str, path: str):
    event = _event(target)
    assert (event["rawPath"], event["requestContext"]["http"]["path"]) == (path, path)


def test_queries_come_as_they_were_sent_and_decoded():
    query = "a=1&a=2&b=%2F%20+%C3%A9&c=&d"
    event = _event(f"/x?{query}")
    assert event["rawQueryString"] == query
    assert event["queryStringParameters"] == {"a": "1,2", "b": "/  é", "c": "", "d": ""}
    without = _event("/x")
    assert (without["rawQueryString"], "queryStringParameters" in without) == ("", False)


def test_headers_of_a_name_come_in_one():
    headers = [("Accept", "a"), ("X-One", "1"), ("accept", "b, c"), ("Host", "h.example"), ("Connection", "keep-alive")]
    event = _event("/", headers=headers)
    assert {name: event["headers"].get(name) for name in ("accept", "x-one", "host", "connection")} == {
        "accept": "a,b, c", "x-one": "1", "host": "h.example", "connection": None,
    }
    assert event["requestContext"]["domainName"] == "h.example"


def test_cookies_come_apart():
    event = _event("/", headers=[("Cookie", "a=1; b=2"), ("Cookie", "c=3")])
    assert (event["cookies"], "cookie" in event["headers"]) == (["a=1", "b=2", "c=3"], False)
    assert "cookies" not in _event("/")


def test_who_calls():
    caller = {"iam": {"userArn": "arn:aws:iam::123456789012:user/ada"}}
    event = _event("/x", "PUT", [("User-Agent", "tests"), ("X-Forwarded-For", "10.0.0.1")], authorizer=caller, source_ip="198.51.100.7")
    context = event["requestContext"]
    http = {"method": "PUT", "path": "/x", "protocol": "HTTP/1.1", "sourceIp": "198.51.100.7", "userAgent": "tests"}
    assert (context["http"], context["authorizer"], context["stage"]) == (http, caller, "$default")
    assert event["headers"]["x-forwarded-for"] == "10.0.0.1, 198.51.100.7"
    assert "authorizer" not in _event("/x")["requestContext"]


def test_an_event_has_what_the_samples_have():
    """Compares the event with a sample of API Gateway in `events/`."""
    sample = json.loads((_REPOSITORY / "events/create-dataset.json").read_text())
    headers = [(name, value) for name, value in sample["headers"].items() if not name.startswith("x-forwarded-")]
    function = Fake()
    gateway = Gateway([("/api/3.0/mlflow/datasets/{proxy+}", "f")], {"f": function}, authorizer=sample["requestContext"]["authorizer"])
    gateway.answer(Received("POST", sample["rawPath"], headers, sample["body"].encode()))
    [event] = function.events
    chosen = {"apiId", "domainName", "domainPrefix", "requestId", "time", "timeEpoch", "accountId"}
    assert event["requestContext"].keys() == sample["requestContext"].keys()
    for one in (event, sample):
        one["requestContext"] = {name: value for name, value in one["requestContext"].items() if name not in chosen}
    assert event == sample


@pytest.mark.parametrize("kind", ["application/json", "Text/Plain; charset=utf-8", "application/xml", "application/javascript", None])
def test_text_comes_as_text(kind: str | None):
    event = _event("/", "POST", [("Content-Type", kind)] if kind else [], "é\n".encode())
    assert (event["body"], event["isBase64Encoded"]) == ("é\n", False)
    assert event["headers"]["content-length"] == "3"


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/x-protobuf", "image/png", "application/x-www-form-urlencoded"])
def test_other_bodies_come_in_base64(kind: str):
    body = bytes(range(256))
    event = _event("/", "PUT", [("Content-Type", kind)], body)
    assert (base64.b64decode(event["body"], validate=True), event["isBase64Encoded"]) == (body, True)


def test_what_is_called_text_and_is_none_comes_broken():
    event = _event("/", "POST", [("Content-Type", "application/json"), ("Content-Encoding", "gzip")], b"\x1f\x8b{}")
    assert (event["body"], event["isBase64Encoded"]) == ("\x1f\N{REPLACEMENT CHARACTER}{}", False)


def test_no_body():
    event = _event("/", "POST")
    assert ("body" in event, event["isBase64Encoded"]) == (False, False)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/a/b/c", "/a/b/c"),
        ("/a/b/d", "/a/b/{proxy+}"),
        ("/a/b/c/d", "/a/b/{proxy+}"),
        ("/a/x", "/a/{proxy+}"),
        ("/a/b", "/a/{proxy+}"),
        ("/a/b/", "/a/{proxy+}"),
        ("/a", "$default"),
        ("/a/", "$default"),
        ("/", "/"),
        ("/ab/c", "$default"),
    ],
)
def test_the_most_specific_route_is_taken(path: str, pattern: str):
    for routes in (_ROUTES, _ROUTES[::-1]):
        assert find_route(routes, path)[0] == pattern
    function = Fake()
    Gateway(_ROUTES, dict.fromkeys(["rest", "a", "ab", "abc", "page"], function)).answer(Received("GET", path, []))
    [event] = function.events
    assert event["routeKey"] == event["requestContext"]["routeKey"] == (pattern if pattern == "$default" else f"ANY {pattern}")
    rest = {"proxy": path.removeprefix(pattern.removesuffix("{proxy+}"))} if "{" in pattern else None
    assert event.get("pathParameters") == rest


def test_everything_below_the_root_is_no_page():
    routes = [("/{proxy+}", "all"), ("/", "page")]
    assert [find_route(routes, path) for path in ("/", "/x")] == [routes[1], routes[0]]


def test_without_a_route_nothing_is_found():
    assert Gateway([("/a", "f")], {"f": Fake()}).answer(Received("GET", "/b", []))[0] == 404


def test_routes_are_read_from_the_template():
    routes = dict(read_routes(yaml_parse((_REPOSITORY / "template.yaml").read_text())))
    crates = {crate.parent.name for crate in _REPOSITORY.glob("functions/*/Cargo.toml")}
    # These are invoked by the stream, by schedules and by other functions, not by clients.
    assert set(routes.values()) == crates - {"fts-indexer", "deliver", "housekeeper"}
    assert (routes["$default"], routes["/v1/traces"]) == ("tracking", "traces")
    assert all(path == "$default" or path.startswith("/") for path in routes)


def test_answers_are_decoded():
    assert _answer(_HELLO)[::2] == (200, b"hello")
    encoded = base64.b64encode(b"\x00\xff").decode()
    assert _answer({"statusCode": 201, "headers": {}, "body": encoded, "isBase64Encoded": True})[::2] == (201, b"\x00\xff")
    assert _answer({"statusCode": 304}) == (304, [], b"")


def test_headers_of_answers_as_they_are_passed_on():
    said = {"WWW-Authenticate": "Basic", "etag": "a", "Connection": "close", "content-length": "7"}
    answered = _HELLO | {"headers": said, "cookies": ["a=1; Secure", "b=2"]}
    _, headers, _ = _answer(answered)
    assert headers == [("x-amzn-Remapped-WWW-Authenticate", "Basic"), ("etag", "a"), ("set-cookie", "a=1; Secure"), ("set-cookie", "b=2")]


@pytest.mark.parametrize(
    ("answered", "status"),
    [
        (FunctionFailed("Runtime.ExitError", "it crashed"), 500),
        (FunctionFailed("Sandbox.Timedout", "29 s"), 500),
        (EventTooLong("7 MB"), 413),
        ("no answer of an API", 500),
        ({"body": "without a status"}, 500),
    ],
)
def test_what_goes_wrong_in_a_function(answered: Any, status: int):
    found, headers, body = _answer(answered)
    assert (found, headers, list(json.loads(body))) == (status, [("Content-Type", "application/json")], ["message"])


def test_a_client_does_not_wait_for_ever():
    released = Event()

    class Waits(Fake):
        def invoke(self, event: dict) -> Any:
            released.wait()
            return super().invoke(event)

    gateway = Gateway([("$default", "f")], {"f": Waits()}, Limits(seconds=0.01))
    try:
        assert gateway.answer(Received("GET", "/", []))[::2] == (503, b'{"message": "Service Unavailable"}')
    finally:
        released.set()


def test_how_long_requests_may_be():
    gateway = Gateway([("$default", "f")], {"f": Fake()})

    def status(target: str = "/", headers: list[tuple[str, str]] = [], body: bytes = b"") -> int:
        return gateway.answer(Received("GET", target, headers, body))[0]

    # The request line without a target: `GET`, two spaces and the version.
    line = len("GET  HTTP/1.1")
    longest = "/" + "x" * (10_240 - line - 1)
    assert (status(longest), status(f"{longest}x")) == (200, 431)
    assert (status(headers=[("x", "y" * (10_240 - line - 1))]), status(headers=[("x", "y" * (10_240 - line))])) == (200, 431)
    assert (status(body=bytes(10 << 20)), status(body=bytes((10 << 20) + 1))) == (200, 413)
    assert status("/é") == 400


@pytest.fixture
def over_http() -> Iterator[tuple[HTTPConnection, Fake]]:
    """Yields a connection to the gateway, and the function behind it."""
    function = Fake(_HELLO | {"cookies": ["a=1", "b=2"]})
    with serving(Gateway([("$default", "f")], {"f": function}).answer) as url:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        yield connection, function
        connection.close()


def test_over_http(over_http: tuple[HTTPConnection, Fake]):
    connection, function = over_http
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "POST", "GET"):
        connection.request(method, "/a%2Fb?c=%20", b"\x00body", {"Content-Type": "x/y", "X-Name": "value"})
        answer = connection.getresponse()
        assert (answer.status, answer.read(), answer.headers.get_all("set-cookie")) == (200, b"hello", ["a=1", "b=2"])
        event = function.events[-1]
        assert (event["requestContext"]["http"]["method"], event["rawPath"], event["headers"]["x-name"]) == (method, "/a/b", "value")
        assert base64.b64decode(event["body"]) == b"\x00body"
    connection.request("HEAD", "/")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    connection.request("PUT", "/", iter([b"in ", b"chunks"]), {"Content-Type": "text/plain"}, encode_chunked=True)
    connection.getresponse().read()
    assert (function.events[-1]["body"], function.events[-1]["headers"]["content-length"]) == ("in chunks", "9")


def test_requests_at_once():
    """Sends requests from all clients concurrently, to a function that waits for all of them."""
    clients, together = 16, Barrier(16, timeout=60)

    class Together(Fake):
        def invoke(self, event: dict) -> Any:
            together.wait()
            return super().invoke(event)

    with serving(Gateway([("$default", "f")], {"f": Together()}).answer) as url:
        connections = [HTTPConnection(urlsplit(url).netloc, timeout=60) for _ in range(clients)]
        for connection in connections:
            connection.request("GET", "/")
        assert [connection.getresponse().status for connection in connections] == [200] * clients
        for connection in connections:
            connection.close()
