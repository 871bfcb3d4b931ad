"""Lambda's runtime API for one function: hands it events, and takes its answers to their end before it confirms them, as Lambda does."""

import json
import os
import queue
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .processes import ChildProcess, child_environment

#: Longer than any function takes.
_PATIENCE_SECONDS = 60


class RunningFunction:
    """The program of a function, which waits for events."""

    def __init__(self, events: queue.Queue, answers: queue.Queue, process: ChildProcess):
        self._events, self._answers, self._process = events, answers, process

    def invoke(self, event: Any) -> Any:
        """What it answers."""
        self._events.put(json.dumps(event).encode())
        try:
            return json.loads(self._answers.get(timeout=_PATIENCE_SECONDS))
        except queue.Empty:
            raise TimeoutError(self._process.log_tail()) from None


@contextmanager
def running_function(program: Path, log: Path, **settings: str) -> Iterator[RunningFunction]:
    """The program with these environment variables."""
    events: queue.Queue[bytes] = queue.Queue()
    answers: queue.Queue[bytes] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            event = events.get()
            self.send_response(200)
            self.send_header("Lambda-Runtime-Aws-Request-Id", str(uuid.uuid4()))
            self.send_header("Lambda-Runtime-Deadline-Ms", "4102444800000")
            self.send_header("Lambda-Runtime-Invoked-Function-Arn", f"arn:aws:lambda:local:000000000000:function:{program.name}")
            self.send_header("Content-Length", str(len(event)))
            self.end_headers()
            self.wfile.write(event)

        def do_POST(self) -> None:
            answers.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = child_environment(
        AWS_LAMBDA_RUNTIME_API=f"127.0.0.1:{server.server_port}",
        AWS_LAMBDA_FUNCTION_NAME=program.name,
        AWS_LAMBDA_FUNCTION_VERSION="1",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE="512",
        AWS_LAMBDA_LOG_GROUP_NAME="/",
        AWS_LAMBDA_LOG_STREAM_NAME="/",
        **settings,
    )
    process = ChildProcess([os.fspath(program)], environment, log.parent, log)
    try:
        yield RunningFunction(events, answers, process)
    finally:
        process.stop()
        server.shutdown()
        server.server_close()
