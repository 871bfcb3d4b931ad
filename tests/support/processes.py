"""Child processes with a log, which never outlive their test."""

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
#: No process outlives SIGKILL for long, or waits for nothing after SIGTERM, however busy the machine is.
_DEATH_SECONDS = 180
#: Who computes for less than this part of the time, does nothing that is worth waiting for.
_AT_REST = 0.01
Started = TypeVar("Started")

_FIRST_OWN_PORT, _OWN_PORTS = 20_000, 10_000
_ATTEMPTS = 10


class ChildProcess:
    """A server and everything it forks, in a process group of its own."""

    def __init__(self, command: list[str], environment: Mapping[str, str], directory: Path, log: Path, warm: bool = False):
        """With `warm`, the command is what follows `python`, and MLflow has been imported (`warm.py`)."""
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
        return _group_and_cpu(Path(f"/proc/{self.pid}/stat"))[1]

    def group_cpu_seconds(self) -> float:
        """The same of all processes in its group that are there now."""
        return sum(cpu for group, cpu in map(_group_and_cpu, Path("/proc").glob("[0-9]*/stat")) if group == self.pid)

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
            # It has ended; or it is a copy that has no group of its own yet.
            if isinstance(self._process, WarmProcess) and self.is_running:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, number)


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


class Patience:
    """How long a process is waited for. On a machine that does much else, a start takes as long as it takes.

    It is over once the process has computed for so many seconds, or has done next to nothing for so many.
    """

    def __init__(self, seconds: float, now: float, computed: float):
        self._seconds = seconds
        self._begin = now
        self._computed_before = computed
        self._looks = [(now, computed)]

    def is_due(self, now: float) -> bool:
        """Whether a second has passed since the last look: a look reads all processes."""
        return now >= self._looks[-1][0] + 1

    def is_over(self, now: float, computed: float) -> bool:
        """Take a look at how long the process has computed, and say whether that was enough."""
        # The first of them is the last before the time that counts.
        while len(self._looks) > 1 and self._looks[1][0] <= now - self._seconds:
            self._looks.pop(0)
        since, before = self._looks[0]
        rests = now - since >= self._seconds and computed - before < self._seconds * _AT_REST
        self._looks.append((now, computed))
        return rests or computed - self._computed_before > self._seconds

    def spent(self) -> str:
        """What it was waited for, in words."""
        now, computed = self._looks[-1]
        return f"{now - self._begin:.0f} s, of which it has computed {computed - self._computed_before:.0f}"


def wait_until(condition: Callable[[], object], what: str, process: ChildProcess, patience: float = 180):
    """Poll `condition` until it is truthy and return its value; fail with the log if the process died, or `Patience` is over."""
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
    """The process group, and how long the process has computed; nothing of one that is gone."""
    try:
        # What stands before is the name, which may have spaces, and ends with the last bracket.
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0.0
    return int(fields[2]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_environment(**additions: str) -> dict[str, str]:
    """This process's environment without what would steer MLflow, and without telemetry."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return kept | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "NO_PROXY": "127.0.0.1"} | additions
