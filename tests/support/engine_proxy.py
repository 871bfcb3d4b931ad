"""A proxy between a server and an engine. It forwards requests, or responds to them itself."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.support.engine import Engine, start_engine

_TIMEOUT_SECONDS = 120
#: Status, content type and body.
Answer = tuple[int, str, bytes]
Headers = list[tuple[str, str]]


class EngineProxy:
    """Forwards all requests. Subclasses override `answer` to respond to some of them."""

    def __init__(self, engine: Engine):
        self.engine = engine
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, kind, answer = outer.answer(self.headers.items(), body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @classmethod
    @contextmanager
    def over_new_engine(cls, directory: Path) -> Iterator[Self]:
        """Yields a proxy in front of a new engine, whose data is in `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        engine = start_engine(directory, directory / "data")
        try:
            proxy = cls(engine)
            try:
                yield proxy
            finally:
                proxy._stop()
        finally:
            engine.process.stop()

    @property
    def options(self) -> tuple[str, ...]:
        """Returns the options with which `serve` and `gc` use this proxy."""
        return ("--dynamodb-endpoint", f"http://127.0.0.1:{self._server.server_port}")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.engine.access_key,
            "AWS_SECRET_ACCESS_KEY": self.engine.secret,
            "AWS_REGION": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def answer(self, headers: Headers, body: bytes) -> Answer:
        """Returns the response to a request."""
        return self.forward(headers, body)

    def forward(self, headers: Headers, body: bytes) -> Answer:
        """Returns the engine's response to a request."""
        connection = http.client.HTTPConnection(urlsplit(self.engine.url).netloc, timeout=_TIMEOUT_SECONDS)
        try:
            # All headers are forwarded unchanged, including the host, because they are signed.
            connection.putrequest("POST", "/", skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() != "connection":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()
        finally:
            connection.close()

    def _stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
