"""An HTTP server in API Gateway's place: it verifies each request, and hands on what is signed."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .verifier import Received, Refused, Verifier

_TIMEOUT_SECONDS = 60
#: What belongs to one connection, and is not handed on.
_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}

#: Status, headers and body of an answer.
Answer = tuple[int, dict[str, str], bytes]
Backend = Callable[[Received], Answer]


@contextmanager
def serving(backend: Backend, host: str = "127.0.0.1") -> Iterator[str]:
    """A server that answers every request as `backend` does; yields its URL."""

    class Handler(_Handler):
        answer = staticmethod(backend)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def strict(verifier: Verifier, backend: Backend) -> Backend:
    """403 for what is not signed as the verifier wants it; everything else goes to `backend`."""

    def answer(request: Received) -> Answer:
        try:
            verifier.verify(request)
        except Refused as why:
            return 403, {"Content-Type": "application/json"}, json.dumps({"message": f"Forbidden: {why}"}).encode()
        return backend(request)

    return answer


def echo(request: Received) -> Answer:
    """What a server understands of a request: decoded path, decoded parameters in their order, body."""
    path, _, query = request.target.partition("?")
    understood = understand(path, query) | {"body": request.body.decode("latin-1")}
    return 200, {"Content-Type": "application/json"}, json.dumps(understood).encode()


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
            headers = {name: value for name, value in response.getheaders() if name.lower() not in _HOP_BY_HOP}
            return response.status, headers, response.read()
        finally:
            connection.close()

    return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_SECONDS
    wbufsize = -1  # An answer is sent in one piece: in two, each would wait 40 ms for the other's acknowledgement.
    answer: Backend

    def handle_method(self) -> None:
        method, target, _ = self.requestline.split(" ")
        status, headers, body = self.answer(Received(method, target, list(self.headers.items()), self._body()))
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if method != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_method

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunk(self) -> bytes:
        chunk = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return chunk

    def log_message(self, *_) -> None:
        """Nothing on the screen."""
