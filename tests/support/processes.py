"""Child processes with a log file, which never outlive their test."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from tests.support.warm import WarmProcess

_LOG_LINES_SHOWN = 40
#: Timeout for a process to end after SIGKILL, or for one that is expected to end by itself.
#: Generous, because the machine may be busy.
_DEATH_SECONDS = 180
#: Fraction of the time that a process has to spend computing. Below it, the process is considered
#: stuck.
_AT_REST = 0.01
Started = TypeVar("Started")

_FIRST_OWN_PORT, _OWN_PORTS = 20_000, 10_000
_ATTEMPTS = 10


class ChildProcess:
    """A server and all processes that it forks, in a process group of their own."""

    def __init__(self, command: list[str], environment: Mapping[str, str], directory: Path, log: Path, warm: bool = False):
        """Starts the process. With `warm`, the command consists of the arguments of `python`, and
        starts with MLflow already imported (`warm.py`).
        """
        self._log = log
        self._process: subprocess.Popen[bytes] | WarmProcess
        if warm:
            self._process = WarmProcess(command, environment, directory, log)
            return
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # stop() and kill() send signals to the group. `mlflow server` is a supervisor with
                # a worker, and killing only the supervisor would leave the port in use.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def peak_kb(self) -> int:
        """Returns the peak memory usage."""
        [line] = [line for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if "VmHWM" in line]
        return int(line.split()[1])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Waits until the process has ended."""
        self._process.wait(_DEATH_SECONDS)

    def cpu_seconds(self) -> float:
        """Returns the CPU time used so far. Unlike elapsed time, it is not affected by other
        programs.
        """
        return _group_and_cpu(Path(f"/proc/{self.pid}/stat"))[1]

    def group_cpu_seconds(self) -> float:
        """Returns the CPU time used so far by all processes that are in its group now."""
        return sum(cpu for group, cpu in map(_group_and_cpu, Path("/proc").glob("[0-9]*/stat")) if group == self.pid)

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def log_tail(self) -> str:
        return "\n".join(self.log_text().splitlines()[-_LOG_LINES_SHOWN:])

    def stop(self, patience: float = 10) -> None:
        """Sends SIGTERM to the group, and SIGKILL after `patience` seconds."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """Sends SIGKILL to the group, which simulates a power cut: no handler of the server runs.
        """
        self._signal(signal.SIGKILL)
        self._process.wait(_DEATH_SECONDS)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            # The process has ended, or it is a forked copy that has not created its group yet.
            if isinstance(self._process, WarmProcess) and self.is_running:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, number)


def start_on_own_port(start: Callable[[int], Started]) -> Started:
    """Starts a program that cannot pick a free port and report it.

    The ports are below the range that systems use for port 0, so that no other server of the tests
    gets one between the check and the start. Each process of the tests begins at a different port.
    If the port is taken anyway, `start` raises PortTaken, and the next port is tried.
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
    raise PortTaken(f"{_ATTEMPTS} consecutive ports are taken; last error: {said}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class PortTaken(Exception):
    """The port is used by another program."""


class Patience:
    """Decides how long to wait for a process, so that a busy machine does not cause failures.

    Waiting is over once the process has used this many seconds of CPU time, or has been nearly idle
    for this many seconds.
    """

    def __init__(self, seconds: float, now: float, computed: float):
        self._seconds = seconds
        self._begin = now
        self._computed_before = computed
        self._looks = [(now, computed)]

    def is_due(self, now: float) -> bool:
        """Returns whether a second has passed since the last check. A check reads all processes, so
        it is not done more often.
        """
        return now >= self._looks[-1][0] + 1

    def is_over(self, now: float, computed: float) -> bool:
        """Records the CPU time, and returns whether waiting is over."""
        # The first entry is the last one before the interval of `_seconds`.
        while len(self._looks) > 1 and self._looks[1][0] <= now - self._seconds:
            self._looks.pop(0)
        since, before = self._looks[0]
        rests = now - since >= self._seconds and computed - before < self._seconds * _AT_REST
        self._looks.append((now, computed))
        return rests or computed - self._computed_before > self._seconds

    def spent(self) -> str:
        """Describes how long the process was waited for."""
        now, computed = self._looks[-1]
        return f"{now - self._begin:.0f} s, of which it has computed {computed - self._computed_before:.0f}"


def wait_until(condition: Callable[[], object], what: str, process: ChildProcess, patience: float = 180):
    """Polls `condition` until it is truthy, and returns its value. Fails with the end of the log if
    the process has ended, or if `Patience` is over.
    """
    left = Patience(patience, time.monotonic(), process.group_cpu_seconds())
    while True:
        if value := condition():
            return value
        if not process.is_running:
            raise RuntimeError(f"the server ended while waiting for {what}:\n{process.log_tail()}")
        now = time.monotonic()
        if left.is_due(now) and left.is_over(now, process.group_cpu_seconds()):
            raise TimeoutError(f"no {what} within {left.spent()}:\n{process.log_tail()}")
        time.sleep(0.02)


def _group_and_cpu(stat: Path) -> tuple[int, float]:
    """Returns the process group and the CPU time in seconds, or zeros if the process has ended."""
    try:
        # The fields before are the pid and the name, which may contain spaces and ends with the
        # last parenthesis.
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0
    return int(fields[2]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_environment(**additions: str) -> dict[str, str]:
    """Returns this process's environment without MLflow's variables, and with telemetry disabled.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return kept | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "NO_PROXY": "127.0.0.1"} | additions
