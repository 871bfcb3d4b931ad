"""A small HTTP server that passes requests to a callback exactly as they were received, and sends
what it returns.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Timeout of an idle connection. Longer than any pause between a client's requests on a busy
#: machine.
_SILENCE_SECONDS = 600
#: Length of the queue for new connections, which is more than the clients of any test open.
_WAITING = 128

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Received:
    """A request as it was received: the target is not decoded, headers are in their order and may
    be repeated, and the body is complete.
    """

    method: str
    target: str
    headers: Headers
    body: bytes = b""

    def values(self, name: str) -> list[str]:
        """Returns all values of a header. Its name is not case-sensitive."""
        return [value for header, value in self.headers if header.lower() == name]


#: Status, headers and body of a response.
Answer = tuple[int, Headers, bytes]
Backend = Callable[[Received], Answer]


@contextmanager
def serving(backend: Backend, host: str = "127.0.0.1") -> Iterator[str]:
    """Runs a server that responds to each request with the result of `backend`, with a thread per
    connection. Yields its URL.
    """

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
        """Ignores connections that the client has reset. A client that was stopped is
        not an error.
        """
        if not isinstance(sys.exc_info()[1], ConnectionResetError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_SECONDS
    # Buffers the response, so that head and body are sent together. Sent separately, each would
    # wait 40 ms for the acknowledgement of the other.
    wbufsize = -1
    answer: Backend

    def handle_method(self) -> None:
        method, target, _ = self.requestline.split(" ")
        status, headers, body = self.answer(Received(method, target, list(self.headers.items()), self._body()))
        # `send_response` adds the current date, unless the backend sets one.
        is_dated = any(name.lower() == "date" for name, _ in headers)
        (self.send_response_only if is_dated else self.send_response)(status)
        for name, value in headers:
            self.send_header(name, value)
        # A response to HEAD may have the length of the body that it omits.
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
        """Suppresses the log."""
