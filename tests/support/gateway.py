"""API Gateway in front of functions: an HTTP API with events in payload format 2.0.

Behaves as documented in AWS's developer guide, and otherwise as measured by others: paths are
decoded, bodies are encoded in base64 unless their type is text, and `WWW-Authenticate` is renamed
in responses. It does not require signatures; `tests/clients/gateway.py` does.
"""

import base64
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from .http_server import Answer, Received
from .runtime_api import EventTooLong, FunctionFailed

_GREEDY = "{proxy+}"
_DEFAULT = "$default"

#: Content types, or prefixes of them, whose bodies are passed on as text. So are bodies without a
#: content type.
_TEXT = ("text/", "application/json", "application/javascript", "application/xml")
#: Headers that belong to one connection, or that only the gateway sets.
_NOT_PASSED_ON = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}
#: Headers of functions that clients receive under a different name.
_RENAMED = {"www-authenticate": "x-amzn-Remapped-WWW-Authenticate"}
#: Maximum number of concurrent requests, which is more than the clients of the tests send.
_AT_ONCE = 64

#: A path pattern (`/a/b`, `/a/{proxy+}`, or `$default`), and the crate of the function behind it.
Route = tuple[str, str]


class Invocable(Protocol):
    """A target for events, such as runtime_api.Function."""

    def invoke(self, event: Any) -> Any:
        """Returns the function's result. Raises EventTooLong or FunctionFailed."""


@dataclass(frozen=True)
class Limits:
    """API Gateway's limits: bytes of the request line and the header values, bytes of the body, and
    the timeout in seconds.
    """

    head_bytes: int = 10_240
    body_bytes: int = 10 * 1024 * 1024
    seconds: float = 30


def read_routes(template: Mapping[str, Any]) -> list[Route]:
    """Returns the routes of the API in template.yaml, from its OpenAPI body."""

    def crate(path: Mapping[str, Any]) -> str:
        uri = path["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        return uri.partition("${AWS::StackName}-")[2].removesuffix("/invocations")

    paths = template["Resources"]["Api"]["Properties"]["Body"]["paths"]
    return [(_DEFAULT if path == f"/{_DEFAULT}" else path, crate(said)) for path, said in paths.items()]


def find_route(routes: Sequence[Route], path: str) -> Route | None:
    """Returns the route of a decoded path: an exact match, or the longest matching prefix, or the
    default.

    `/a/{proxy+}` matches paths with at least one character after `/a/`.
    """

    def rank(route: Route) -> int:
        pattern = route[0]
        if pattern == path:
            return len(path) + 2
        beginning = pattern.removesuffix(_GREEDY)
        if beginning != pattern and path.startswith(beginning) and path != beginning:
            return len(beginning)
        return 0 if pattern == _DEFAULT else -1

    found = max(routes, key=rank, default=None)
    return found if found and rank(found) >= 0 else None


class Gateway:
    """Responds to requests by calling the functions that the routes lead to."""

    def __init__(
        self,
        routes: Sequence[Route],
        functions: Mapping[str, Invocable],
        limits: Limits = Limits(),
        authorizer: Mapping[str, Any] | None = None,
        source_ip: str = "192.0.2.1",
    ):
        """Creates a gateway. Functions receive `authorizer` as the caller's identity, and
        `source_ip` as its address.
        """
        self._routes, self._functions, self._limits = routes, functions, limits
        self._authorizer, self._source_ip = authorizer, source_ip
        self._under_way = ThreadPoolExecutor(_AT_ONCE, "gateway")

    def answer(self, request: Received) -> Answer:
        """Returns the response that a client receives."""
        head = len(f"{request.method} {request.target} HTTP/1.1") + sum(len(value) for _, value in request.headers)
        if head > self._limits.head_bytes:
            return _said(431, "Request Header Fields Too Large")
        if len(request.body) > self._limits.body_bytes:
            return _said(413, "Request Entity Too Large")
        if not request.target.isascii():
            return _said(400, "Bad Request")
        path = _path(request)
        route = find_route(self._routes, path)
        if route is None:
            return _said(404, "Not Found")
        pattern, function = route
        call = self._under_way.submit(self._functions[function].invoke, self._event(request, path, pattern))
        try:
            return _answer(call.result(self._limits.seconds))
        except EventTooLong:
            return _said(413, "Request Entity Too Large")
        except TimeoutError:
            # The function continues, but its result is discarded.
            return _said(503, "Service Unavailable")
        except FunctionFailed:
            return _said(500, "Internal Server Error")

    def _event(self, request: Received, path: str, pattern: str) -> dict[str, Any]:
        key = pattern if pattern == _DEFAULT else f"ANY {pattern}"
        query = request.target.partition("?")[2]
        headers = self._headers(request)
        cookies = [cookie for value in request.values("cookie") for cookie in value.split("; ")]
        host = headers.get("host", "")
        now = time.time()
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": key,
            "rawPath": path,
            "rawQueryString": query,
            "headers": headers,
            "requestContext": {
                "accountId": "123456789012",
                "apiId": host.partition(".")[0],
                "domainName": host,
                "domainPrefix": host.partition(".")[0],
                "http": {
                    "method": request.method,
                    "path": path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": self._source_ip,
                    "userAgent": headers.get("user-agent", ""),
                },
                "requestId": uuid.uuid4().hex[:15] + "=",
                "routeKey": key,
                "stage": "$default",
                "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
                "timeEpoch": int(now * 1000),
            },
            "isBase64Encoded": False,
        }
        if cookies:
            event["cookies"] = cookies
        if query:
            event["queryStringParameters"] = _joined(parse_qsl(query, keep_blank_values=True))
        if pattern.endswith(_GREEDY):
            event["pathParameters"] = {"proxy": path[len(pattern) - len(_GREEDY) :]}
        if self._authorizer is not None:
            event["requestContext"]["authorizer"] = self._authorizer
        if request.body:
            is_text = headers.get("content-type", "text/").strip().lower().startswith(_TEXT)
            # A body with a text type that is not UTF-8 arrives corrupted.
            event["body"] = request.body.decode(errors="replace") if is_text else base64.b64encode(request.body).decode()
            event["isBase64Encoded"] = not is_text
        return event

    def _headers(self, request: Received) -> dict[str, str]:
        """Returns the headers by lowercase name. Values of a repeated header are joined with
        commas. Cookies are not included, because they have a field of their own.
        """
        headers = _joined((name.lower(), value) for name, value in request.headers)
        headers = {name: value for name, value in headers.items() if name not in ("connection", "cookie", "transfer-encoding")}
        before = headers.get("x-forwarded-for")
        return headers | {
            "content-length": str(len(request.body)),
            "x-forwarded-for": f"{before}, {self._source_ip}" if before else self._source_ip,
            # Outside of tests, clients always use TLS.
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        }


def _path(request: Received) -> str:
    """Returns the path, decoded once."""
    return unquote(request.target.partition("?")[0], errors="replace")


def _joined(pairs) -> dict[str, str]:
    """Joins the values of each name with commas."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _answer(answered: Any) -> Answer:
    """Converts a function's result to the response that a client receives."""
    # All functions of this project return a status. API Gateway would turn a result without one
    # into a 200.
    if not isinstance(answered, dict) or not isinstance(answered.get("statusCode"), int):
        return _said(500, "Internal Server Error")
    body = answered.get("body") or ""
    content = base64.b64decode(body, validate=True) if answered.get("isBase64Encoded") else body.encode()
    headers = [
        (_RENAMED.get(name.lower(), name), value)
        for name, value in answered.get("headers", {}).items()
        if name.lower() not in _NOT_PASSED_ON
    ]
    cookies = [("set-cookie", cookie) for cookie in answered.get("cookies", [])]
    return answered["statusCode"], [*headers, *cookies], content


def _said(status: int, message: str) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps({"message": message}).encode()
