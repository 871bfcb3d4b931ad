"""A small HTTP server: it hands requests over as they came over the wire, and sends what it gets for them."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: How long a connection may say nothing. Longer than any pause between a client's requests on a busy machine.
_SILENCE_SECONDS = 600
#: Connections that may wait until a thread takes them: more than any test's clients.
_WAITING = 128

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire: the target undecoded, the headers in order and repeated, the body whole."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""

    def values(self, name: str) -> list[str]:
        """All values of a header, whatever its case."""
        return [value for header, value in self.headers if header.lower() == name]


#: Status, headers and body of an answer.
Answer = tuple[int, Headers, bytes]
Backend = Callable[[Received], Answer]


@contextmanager
def serving(backend: Backend, host: str = "127.0.0.1") -> Iterator[str]:
    """A server that answers every request as `backend` does, each connection in a thread of its own; yields its URL."""

    class Handler(_Handler):
        answer = staticmethod(backend)

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _WAITING

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was stopped is no error of the server's."""
        if not isinstance(sys.exc_info()[1], ConnectionResetError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_SECONDS
    wbufsize = -1  # An answer is sent in one piece: in two, each would wait 40 ms for the other's acknowledgement.
    answer: Backend

    def handle_method(self) -> None:
        method, target, _ = self.requestline.split(" ")
        status, headers, body = self.answer(Received(method, target, list(self.headers.items()), self._body()))
        # By itself, an answer has the time of this machine.
        is_dated = any(name.lower() == "date" for name, _ in headers)
        (self.send_response_only if is_dated else self.send_response)(status)
        for name, value in headers:
            self.send_header(name, value)
        # An answer to HEAD may say the length of what it does not have.
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if method != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_method

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
