"""The port of a program that cannot choose one itself, and how long one is waited for."""

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.support.processes import ChildProcess, PortTaken, start_on_own_port, wait_until


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
            raise PortTaken("somebody was faster")
        return port

    assert start_on_own_port(start) == tried[1] != tried[0]


def test_it_is_not_tried_for_ever():
    def start(port: int) -> int:
        raise PortTaken("never free")

    with pytest.raises(PortTaken, match="never free"):
        start_on_own_port(start)


def _python(directory: Path, program: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-S", "-c", program], os.environ, directory, directory / "log")


def test_who_computes_is_waited_for(tmp_path):
    # A child does it, as the worker of a server does, and takes twice as long as it computes.
    rounds = "import time\nfor end in range(1, 10):\n    while time.process_time() < end / 4: pass\n    time.sleep(0.25)"
    process = _python(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {rounds!r}])")
    try:
        with pytest.raises(RuntimeError, match="ended while waiting"):
            wait_until(lambda: False, "nothing", process, patience=3)
    finally:
        process.kill()


def test_who_rests_or_computes_for_ever_is_not(tmp_path):
    for program in ("import time; time.sleep(600)", "while True: pass"):
        process = _python(tmp_path, program)
        try:
            with pytest.raises(TimeoutError, match="no wonder within"):
                wait_until(lambda: False, "wonder", process, patience=2)
        finally:
            process.kill()
