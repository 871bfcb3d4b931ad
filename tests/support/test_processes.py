"""Tests of `start_on_own_port` and `Patience`."""

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.support.processes import ChildProcess, Patience, PortTaken, start_on_own_port, wait_until


def test_a_port_that_somebody_has_is_left_alone():
    first = start_on_own_port(lambda port: port)
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", first))
        assert start_on_own_port(lambda port: port) != first


def test_a_port_that_is_taken_at_the_last_moment_is_given_up():
    tried = []

    def start(port: int) -> int:
        tried.append(port)
        if len(tried) == 1:
            raise PortTaken("another program was faster")
        return port

    assert start_on_own_port(start) == tried[1] != tried[0]


def test_it_is_not_tried_for_ever():
    def start(port: int) -> int:
        raise PortTaken("never free")

    with pytest.raises(PortTaken, match="never free"):
        start_on_own_port(start)


def _python(directory: Path, program: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-S", "-c", program], os.environ, directory, directory / "log")


def _waited(looks: list[tuple[float, float]], seconds: float = 10) -> float | None:
    """Returns the time at which `Patience` is over, or `None` if it never is. `looks` are pairs of
    a time and the CPU time used until then.
    """
    patience = Patience(seconds, 0, 0)
    return next((now for now, computed in looks if patience.is_due(now) and patience.is_over(now, computed)), None)


def test_who_computes_is_waited_for():
    # On a busy machine, the process gets a fiftieth of a core.
    assert _waited([(second, second / 50) for second in range(1, 400)]) is None
    # The process pauses repeatedly, for nine seconds at a time.
    assert _waited([(second, second // 9 * 0.2) for second in range(1, 400)]) is None


def test_who_rests_or_computes_for_ever_is_not():
    assert _waited([(second, 0.05) for second in range(1, 400)]) == 10
    assert _waited([(second, min(second, 100) / 50) for second in range(1, 400)]) == 106
    assert _waited([(second, second) for second in range(1, 400)]) == 11


def test_what_a_process_and_its_children_compute_is_told(tmp_path):
    # The child uses CPU time, prints a word, and then sleeps until it is killed.
    child = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ntime.sleep(600)"
    process = _python(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])")
    try:
        wait_until(lambda: "done" in process.log_text(), "word of the child", process)
        assert process.group_cpu_seconds() >= 0.29
        with pytest.raises(TimeoutError, match="no wonder within"):
            wait_until(lambda: False, "wonder", process, patience=2)
    finally:
        process.kill()


def test_who_has_ended_is_not_waited_for(tmp_path):
    process = _python(tmp_path, "print('I end here')")
    with pytest.raises(RuntimeError, match="ended while waiting for nothing:\nI end here"):
        wait_until(lambda: False, "nothing", process)
