"""S3's handling of CORS, for moto's server, which by itself allows pages of every origin to read
everything.
"""

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import CorsRule, s3_backends
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

_VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"
_REFUSED = (
    "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / "
    "Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."
)
Headers = list[tuple[str, str]]


class LocalS3Server(ThreadedMotoServer):
    """Moto's server with the bucket's own CORS rules in place of its `*`."""

    def _server_entry(self) -> None:
        app = CorsAsS3(DomainDispatcherApplication(create_backend_app), _rules_of)
        self._server = make_server(self._ip_address, self._port, app, True, request_handler=MotoRequestHandler)
        self._server_ready_event.set()
        self._server.serve_forever()


class CorsAsS3:
    """Handles preflight requests, and adds CORS headers to other responses, by the first rule that
    allows the origin and method.

    Without a matching rule, a response has no CORS headers, so that the browser withholds it from
    the page. The request itself is still executed.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], rules_of: Callable[[str], list[CorsRule]]):
        """`rules_of` returns the rules of a bucket, whose name is the first part of the path."""
        self._app, self._rules_of = app, rules_of

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        bucket = environ.get("PATH_INFO", "").lstrip("/").partition("/")[0]
        origin, method = environ.get("HTTP_ORIGIN"), environ["REQUEST_METHOD"]
        if method == "OPTIONS":
            status, headers, body = self._preflight(bucket, origin, environ)
            start_response(status, [*headers, ("Content-Length", str(len(body)))])
            return [body]
        rule = first(self._rules_of(bucket), origin, method) if origin else None
        allowed = _headers(rule, origin) if rule and origin else []

        def start(status: str, headers: Headers, *rest: Any) -> Any:
            own = [(name, value) for name, value in headers if not name.lower().startswith("access-control-")]
            return start_response(status, [*own, *allowed], *rest)

        return self._app(environ, start)

    def _preflight(self, bucket: str, origin: str | None, environ: dict[str, Any]) -> tuple[str, Headers, bytes]:
        wanted = environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD")
        if not origin or not wanted:
            return _error("400 Bad Request", "BadRequest", "Insufficient information. Origin request header needed.")
        if not (rules := self._rules_of(bucket)):
            return _error("403 Forbidden", "AccessForbidden", "CORSResponse: CORS is not enabled for this bucket.")
        asked = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "")
        names = [name.strip().lower() for name in asked.split(",") if name.strip()]
        if not (rule := first(rules, origin, wanted, names)):
            return _error("403 Forbidden", "AccessForbidden", _REFUSED)
        headers = _headers(rule, origin)
        if names:
            headers.append(("Access-Control-Allow-Headers", ", ".join(names)))
        return "200 OK", headers, b""


def first(rules: list[CorsRule], origin: str, method: str, headers: Iterable[str] = ()) -> CorsRule | None:
    """Returns the first rule that allows the method for the origin. For a preflight request, the
    rule must also allow all of these headers."""

    def allows(rule: CorsRule) -> bool:
        takes_headers = all(_is_any(name, rule.allowed_headers, re.IGNORECASE) for name in headers)
        return method in rule.allowed_methods and _is_any(origin, rule.allowed_origins) and takes_headers

    return next((rule for rule in rules if allows(rule)), None)


def _is_any(text: str, patterns: list[str] | None, flags: int = 0) -> bool:
    """Returns whether a pattern matches the text. An asterisk matches any text."""
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text, flags) for pattern in patterns or [])


def _headers(rule: CorsRule, origin: str) -> Headers:
    is_for_all = "*" in rule.allowed_origins
    headers = [("Access-Control-Allow-Origin", "*" if is_for_all else origin), ("Vary", _VARY)]
    headers.append(("Access-Control-Allow-Methods", ", ".join(rule.allowed_methods)))
    if not is_for_all:
        headers.append(("Access-Control-Allow-Credentials", "true"))
    if rule.exposed_headers:
        headers.append(("Access-Control-Expose-Headers", ", ".join(rule.exposed_headers)))
    if rule.max_age_seconds is not None:
        headers.append(("Access-Control-Max-Age", str(rule.max_age_seconds)))
    return headers


def _error(status: str, code: str, message: str) -> tuple[str, Headers, bytes]:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{escape(message, quote=False)}</Message></Error>'
    return status, [("Content-Type", "application/xml")], body.encode()


def _rules_of(bucket: str) -> list[CorsRule]:
    found = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets.get(bucket)
    return found.cors if found else []
