"""A process of a function behind Lambda's runtime API, with its CPU time."""

import json
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.http_server import Answer, Received, serving
from tests.support.processes import ChildProcess
from tests.support.runtime_api import function_environment

_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Start:
    """The costs of a start, until the process requests its first event."""

    #: Elapsed time.
    ms: float
    #: CPU time.
    cpu_ms: float
    #: Peak memory so far.
    mb: float


def program_file(program: Path) -> Path:
    """Returns the file of a program. `make release` creates a directory for each program."""
    return program / "bootstrap" if program.is_dir() else program


class Sandbox:
    """A sandbox that handles one event at a time, as in AWS. Its log is in the directory."""

    def __init__(self, program: Path, directory: Path, settings: Mapping[str, str]):
        self._turn = threading.Lock()
        self._events: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[bytes] = queue.Queue()
        #: Times at which the process requested an event, with its CPU time until then.
        self._asked: queue.Queue[tuple[float, float]] = queue.Queue()
        self._stops = ExitStack()
        url = self._stops.enter_context(serving(self._runtime_api))
        environment = function_environment(program.name, url, settings)
        begun = time.perf_counter()
        self.process = ChildProcess([str(program_file(program))], environment, directory, directory / f"{program.name}.log")
        self._stops.callback(self._end)
        asked, self._computed = self._wait_for(self._asked)
        self.start = Start((asked - begun) * 1000, self._computed, self.process.peak_kb() / 1024)
        self.last_cpu_ms = 0.0

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.close()

    def invoke(self, event: Any) -> Any:
        """Returns the function's result. Sets `last_cpu_ms` to the CPU time from the event until the
        process requests the next one.
        """
        with self._turn:
            self._events.put(json.dumps(event, ensure_ascii=False).encode())
            answer = self._wait_for(self._answers)
            _, computed = self._wait_for(self._asked)
            self.last_cpu_ms, self._computed = computed - self._computed, computed
        return json.loads(answer)

    def _wait_for(self, said: queue.Queue) -> Any:
        try:
            return said.get(timeout=_PATIENCE_SECONDS)
        except queue.Empty:
            raise RuntimeError(f"the function does not respond:\n{self.process.log_tail()}") from None

    def _end(self) -> None:
        self._events.put(None)
        self.process.stop(1)

    def _runtime_api(self, request: Received) -> Answer:
        if request.method == "GET":
            self._asked.put((time.perf_counter(), computed_ms(self.process.pid)))
            event = self._events.get()
            if event is None:
                return 410, [], b""
            headers = [
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", "1"),
                ("Lambda-Runtime-Deadline-Ms", str(int((time.time() + _PATIENCE_SECONDS) * 1000))),
                ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:local:000000000000:function:measured"),
            ]
            return 200, headers, event
        self._answers.put(request.body)
        return 202, [], b""


def computed_ms(pid: int) -> float:
    """Returns the CPU time of a process's threads, including time in the kernel. More precise than
    `/proc/PID/stat`, which has a resolution of 10 ms.
    """
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(thread.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            # The thread has ended in the meantime.
            continue
    return total / 1e6
