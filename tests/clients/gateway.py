"""What stands in API Gateway's place: it verifies each request, and hands on what is signed."""

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.http_server import Answer, Backend, Received

from .verifier import Refused, Verifier

_TIMEOUT_SECONDS = 60
#: What belongs to one connection, and is not handed on.
_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


def strict(verifier: Verifier, backend: Backend) -> Backend:
    """403 for what is not signed as the verifier wants it; everything else goes to `backend`."""

    def answer(request: Received) -> Answer:
        try:
            verifier.verify(request)
        except Refused as why:
            return 403, [("Content-Type", "application/json")], json.dumps({"message": f"Forbidden: {why}"}).encode()
        return backend(request)

    return answer


def echo(request: Received) -> Answer:
    """What a server understands of a request: decoded path, decoded parameters in their order, body."""
    path, _, query = request.target.partition("?")
    understood = understand(path, query) | {"body": request.body.decode("latin-1")}
    return 200, [("Content-Type", "application/json")], json.dumps(understood).encode()


def understand(path: str, query: str) -> dict[str, Any]:
    """Decoded path, and decoded parameters in their order."""
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    return {"path": unquote(path), "query": [list(pair) for pair in pairs]}


def forwarding(url: str) -> Backend:
    """Sends each request to the server at `url`, its target as it came."""
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
