"""Child processes with a log, which never outlive their test."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

_LOG_LINES_SHOWN = 40
#: No process outlives SIGKILL for long, or waits for nothing after SIGTERM, however busy the machine is.
_DEATH_SECONDS = 180
Started = TypeVar("Started")

_FIRST_OWN_PORT, _OWN_PORTS = 20_000, 10_000
_ATTEMPTS = 10


class ChildProcess:
    """A server and everything it forks, in a process group of its own."""

    def __init__(self, command: list[str], environment: Mapping[str, str], directory: Path, log: Path):
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # The group is what stop() and kill() signal: `mlflow server` is a supervisor with a
                # worker below it, and killing only the supervisor would leave the port taken.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def peak_kb(self) -> int:
        """The most memory that it has had."""
        [line] = [line for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if "VmHWM" in line]
        return int(line.split()[1])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it has ended, by itself or because it was asked to."""
        self._process.wait(_DEATH_SECONDS)

    def cpu_seconds(self) -> float:
        """How long it has computed so far: unlike the time on the wall, no other program makes that longer."""
        # What stands before the times is the name, which may have spaces, and ends with the last bracket.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def log_tail(self) -> str:
        return "\n".join(self.log_text().splitlines()[-_LOG_LINES_SHOWN:])

    def stop(self, patience: float = 10) -> None:
        """Ask politely, then insist."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """The power cut: no handler of the server gets to run."""
        self._signal(signal.SIGKILL)
        self._process.wait(_DEATH_SECONDS)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass


def start_on_own_port(start: Callable[[int], Started]) -> Started:
    """Start a program that cannot be told to take any free port and to say which.

    The ports are below those that systems hand out for port 0, so that no other server of the tests gets one between
    the look and the start; and every process of the tests begins at another. If somebody has it all the same, `start`
    raises PortTaken, and the next is tried.
    """
    said = "nothing was started"
    for attempt in range(_ATTEMPTS):
        port = _FIRST_OWN_PORT + (os.getpid() + attempt) % _OWN_PORTS
        if not _is_free(port):
            continue
        try:
            return start(port)
        except PortTaken as taken:
            said = str(taken)
    raise PortTaken(f"{_ATTEMPTS} ports in a row are taken; the last time: {said}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class PortTaken(Exception):
    """Another program listens at the port."""


def wait_until(condition: Callable[[], object], what: str, process: ChildProcess, patience: float = 180):
    """Poll `condition` until it is truthy and return its value; fail with the log if the process died."""
    deadline = time.monotonic() + patience
    while True:
        if value := condition():
            return value
        if not process.is_running:
            raise RuntimeError(f"the server ended while waiting for {what}:\n{process.log_tail()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {patience} s:\n{process.log_tail()}")
        time.sleep(0.02)


def child_environment(**additions: str) -> dict[str, str]:
    """This process's environment without what would steer MLflow, and without telemetry."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return kept | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "NO_PROXY": "127.0.0.1"} | additions
