"""Lambda's runtime API: runs the programs of functions in sandboxes, each of which handles one
event at a time.
"""

import json
import os
import queue
import re
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .http_server import Answer, Received, serving
from .processes import ChildProcess, child_environment

#: Maximum size of an event and of a result, as JSON.
LONGEST_BYTES = 6 * 1024 * 1024
#: Trace id of all events, in the longest format that Lambda uses.
TRACE_ID = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=1:a87bd80c:1|68fd508a:5|c512fbe3:2"
#: Polling interval for whether a sandbox has ended without a result.
_LOOK_SECONDS = 0.1
_STOP_SECONDS = 2


class FunctionFailed(Exception):
    """A function returned no result. `kind` is Lambda's name of the error."""

    def __init__(self, kind: str, message: str):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


class EventTooLong(Exception):
    """The event exceeds Lambda's size limit."""


class Function:
    """A function with one sandbox per concurrent event, up to `most`. Further events wait for a
    free sandbox.
    """

    def __init__(self, program: Path, directory: Path, settings: Mapping[str, str], seconds: float, most: int = 4):
        """Creates a function. The program gets `settings` as environment variables, and `seconds`
        as the timeout of an event. Logs are written to `directory`.
        """
        if not program.is_file():
            raise FileNotFoundError(f"{program} is missing: build it")
        self._program, self._directory, self._settings = program, directory, settings
        self._seconds, self._most = seconds, most
        self._sandboxes: list[_Sandbox] = []
        self._free: list[_Sandbox] = []
        self._changed = threading.Condition()
        self._started = 0

    @property
    def started(self) -> int:
        """Returns the number of sandboxes started so far."""
        return self._started

    def log(self) -> str:
        """Returns what all sandboxes have written so far."""
        logs = (self._directory / f"{self._program.name}-{number + 1}.log" for number in range(self._started))
        return "".join(log.read_text("utf-8") for log in logs)

    def invoke(self, event: Any) -> Any:
        """Returns the function's result.

        Raises EventTooLong, or FunctionFailed if the function exits, fails, times out, or exceeds
        Lambda's limit for results.
        """
        text = json.dumps(event, ensure_ascii=False).encode()
        if len(text) > LONGEST_BYTES:
            raise EventTooLong(f"{len(text)} bytes")
        sandbox = self._take()
        try:
            return sandbox.invoke(text)
        finally:
            self._give_back(sandbox)

    def stop(self) -> None:
        """Stops all sandboxes. There must be no event in flight."""
        with self._changed:
            for sandbox in self._sandboxes:
                sandbox.stop()
            self._sandboxes, self._free = [], []

    def _take(self) -> "_Sandbox":
        with self._changed:
            while not self._free and len(self._sandboxes) >= self._most:
                self._changed.wait()
            while self._free:
                sandbox = self._free.pop()
                if sandbox.is_running:
                    return sandbox
                self._forget(sandbox)
            self._started += 1
            log = self._directory / f"{self._program.name}-{self._started}.log"
            self._sandboxes.append(_Sandbox(self._program, log, self._settings, self._seconds))
            return self._sandboxes[-1]

    def _give_back(self, sandbox: "_Sandbox") -> None:
        with self._changed:
            if sandbox.is_running:
                self._free.append(sandbox)
            else:
                self._forget(sandbox)
            self._changed.notify()

    def _forget(self, sandbox: "_Sandbox") -> None:
        self._sandboxes.remove(sandbox)
        sandbox.stop()


def function_environment(name: str, runtime_api: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables of a function's process."""
    return child_environment(
        AWS_LAMBDA_RUNTIME_API=runtime_api.removeprefix("http://"),
        AWS_LAMBDA_FUNCTION_NAME=name,
        AWS_LAMBDA_FUNCTION_VERSION="1",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE="512",
        AWS_LAMBDA_LOG_GROUP_NAME="/",
        AWS_LAMBDA_LOG_STREAM_NAME="/",
        **settings,
    )


class _Sandbox:
    """A process of a function, with its own runtime API."""

    def __init__(self, program: Path, log: Path, settings: Mapping[str, str], seconds: float):
        self._seconds = seconds
        self._name = program.name
        #: Pairs of an event's number and the event, for the process to fetch. `None` signals the
        #: end.
        self._events: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        #: Results of the process: the number of the event, `response` or `error`, and the body.
        self._said: queue.Queue[tuple[str, str, bytes]] = queue.Queue()
        self._stops = ExitStack()
        url = self._stops.enter_context(serving(self._runtime_api))
        environment = function_environment(program.name, url, settings)
        self._process = ChildProcess([os.fspath(program)], environment, log.parent, log)

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def invoke(self, event: bytes) -> Any:
        number = str(uuid.uuid4())
        self._events.put((number, event))
        what, said = self._outcome(number)
        if what != "response":
            error = json.loads(said)
            raise FunctionFailed(error.get("errorType", "Unhandled"), error.get("errorMessage", ""))
        if len(said) > LONGEST_BYTES:
            raise FunctionFailed("Function.ResponseSizeTooLarge", f"{len(said)} bytes")
        return json.loads(said)

    def stop(self) -> None:
        self._process.stop(_STOP_SECONDS)
        # Releases a request that still waits for an event.
        self._events.put(None)
        self._stops.close()

    def _outcome(self, number: str) -> tuple[str, bytes]:
        """Returns the result that the process reports for the event."""
        deadline = time.monotonic() + self._seconds
        while True:
            # Checked before the queue is read, because the process may end right after reporting a
            # result.
            ended = not self._process.is_running
            try:
                of, what, said = self._said.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if ended:
                    raise FunctionFailed("Runtime.ExitError", self._process.log_tail()) from None
                if time.monotonic() > deadline:
                    # Like Lambda, kills the process in the middle of its work.
                    self._process.kill()
                    raise FunctionFailed("Sandbox.Timedout", f"{self._seconds} s\n{self._process.log_tail()}") from None
                continue
            if of in (number, "init"):
                return what, said

    def _runtime_api(self, request: Received) -> Answer:
        if request.method == "GET" and request.target.endswith("/runtime/invocation/next"):
            event = self._events.get()
            if event is None:
                return 410, [], b""
            number, content = event
            headers = [
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", number),
                ("Lambda-Runtime-Trace-Id", TRACE_ID),
                ("Lambda-Runtime-Deadline-Ms", str(int((time.time() + self._seconds) * 1000))),
                ("Lambda-Runtime-Invoked-Function-Arn", f"arn:aws:lambda:local:000000000000:function:{self._name}"),
            ]
            return 200, headers, content
        # The request has been read completely by now. Lambda also reads a result before it confirms
        # it.
        if said := re.search(r"/runtime/(?:invocation/)?([\w-]+)/(response|error)$", request.target):
            self._said.put((said[1], said[2], request.body))
            return 202, [], b""
        return 404, [], b""
