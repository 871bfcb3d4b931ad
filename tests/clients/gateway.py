"""A replacement for API Gateway that verifies each request, and forwards signed ones."""

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.http_server import Answer, Backend, Received

from .verifier import Refused, Verifier

_TIMEOUT_SECONDS = 60
#: Headers that belong to one connection and are not forwarded.
_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


def strict(verifier: Verifier, backend: Backend) -> Backend:
    """Returns a backend that responds with 403 to requests without a valid signature, and passes
    all others to `backend`.
    """

    def answer(request: Received) -> Answer:
        try:
            verifier.verify(request)
        except Refused as why:
            return 403, [("Content-Type", "application/json")], json.dumps({"message": f"Forbidden: {why}"}).encode()
        return backend(request)

    return answer


def echo(request: Received) -> Answer:
    """Responds with the parsed request: the decoded path, the decoded parameters in their order,
    and the body.
    """
    path, _, query = request.target.partition("?")
    understood = understand(path, query) | {"body": request.body.decode("latin-1")}
    return 200, [("Content-Type", "application/json")], json.dumps(understood).encode()


def understand(path: str, query: str) -> dict[str, Any]:
    """Returns the decoded path, and the decoded parameters in their order."""
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    return {"path": unquote(path), "query": [list(pair) for pair in pairs]}


def forwarding(url: str) -> Backend:
    """Returns a backend that forwards each request to the server at `url`, without changing its
    target.
    """
    parts = urlsplit(url)

    def answer(request: Received) -> Answer:
        connection = HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)
        try:
            kept = {name: value for name, value in request.headers if name.lower() not in _HOP_BY_HOP}
            connection.request(request.method, request.target, request.body or None, kept)
            response = connection.getresponse()
            headers = [(name, value) for name, value in response.getheaders() if name.lower() not in _HOP_BY_HOP]
            return response.status, headers, response.read()
        finally:
            connection.close()

    return answer
