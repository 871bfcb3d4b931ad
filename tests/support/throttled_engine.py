"""An engine of which a part is throttled, as DynamoDB throttles a partition that gets more requests than it takes."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.engine import Engine, start_engine

_TIMEOUT_SECONDS = 30
_REFUSAL = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
    "message": "Throughput exceeds the current capacity of your table or index.",
}).encode()


class ThrottledEngine:
    """Stands before an engine. A request that names one of the ids in `throttled` is refused; all others reach the engine."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self.throttled: set[str] = set()
        self.refused = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, kind, answer = outer._answer(self.headers.items(), body)
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

    @property
    def options(self) -> tuple[str, ...]:
        """For `serve`."""
        return ("--dynamodb-endpoint", f"http://127.0.0.1:{self._server.server_port}")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self._engine.access_key,
            "AWS_SECRET_ACCESS_KEY": self._engine.secret,
            "AWS_REGION": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, headers: list[tuple[str, str]], body: bytes) -> tuple[int, str, bytes]:
        if any(name.encode() in body for name in self.throttled):
            self.refused += 1
            return 400, "application/x-amz-json-1.0", _REFUSAL
        connection = http.client.HTTPConnection(urlsplit(self._engine.url).netloc, timeout=_TIMEOUT_SECONDS)
        try:
            # As it came, the host included: that is what was signed.
            connection.putrequest("POST", "/", skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() != "connection":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()
        finally:
            connection.close()


@contextmanager
def throttled_engine(directory: Path) -> Iterator[ThrottledEngine]:
    """An engine with its data in a directory; nothing of it is throttled yet."""
    directory.mkdir(parents=True, exist_ok=True)
    engine = start_engine(directory, directory / "data")
    try:
        throttled = ThrottledEngine(engine)
        try:
            yield throttled
        finally:
            throttled.stop()
    finally:
        engine.process.stop()
