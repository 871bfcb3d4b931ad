"""`make watch` serves: `cargo lambda watch` in front of the functions, which sends small requests to them.

No other test goes through it: it confirms an answer before it has read it, and some of those of some MB never arrive.
"""

import os
import socket
import sys
from pathlib import Path

import requests

from tests.support.engine import start_engine
from tests.support.processes import ChildProcess, PortTaken, child_environment, start_on_own_port, wait_until
from tests.support.s3 import LocalS3

from .conftest import REPOSITORY, function_settings

#: Long enough for a build, and for cargo to wait for another one.
_PATIENCE_SECONDS = 1_800

#: cargo finds its subcommand `lambda` beside this Python.
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_small_requests_reach_the_functions(tmp_path: Path, s3: LocalS3):
    engine = start_engine(tmp_path, tmp_path / "data")
    try:
        settings = function_settings(engine, s3.make_bucket("watched"), tmp_path)
        # It prints no port that it has chosen itself.
        watch, url = start_on_own_port(lambda port: _start(settings, tmp_path / "watch.log", port))
        try:
            assert requests.get(f"{url}/version", timeout=60).text == "3.17.2"
            body = {"max_results": 1}
            found = requests.post(f"{url}/api/2.0/mlflow/experiments/search", json=body, timeout=60).json()
            assert [experiment["name"] for experiment in found["experiments"]] == ["Default"]
        finally:
            watch.stop()
    finally:
        engine.process.stop()


def _start(settings: dict[str, str], log: Path, port: int) -> tuple[ChildProcess, str]:
    """The watch, once the first function answers, and its URL."""
    url = f"http://127.0.0.1:{port}"
    command = ["cargo", "lambda", "watch", "--ignore-changes", "--disable-cors"]
    command += ["--invoke-address", "127.0.0.1", "--invoke-port", str(port)]
    watch = ChildProcess(command, child_environment(PATH=_PATH, **settings), REPOSITORY, log)
    try:
        # Where the port is taken, the watch ends at once and does not say why.
        wait_until(lambda: _listens(port) or not watch.is_running, "listening", watch)
        # The function is built and started by its first request, which waits for it: those who give up would all be answered first.
        if not (watch.is_running and requests.get(f"{url}/health", timeout=_PATIENCE_SECONDS).text == "OK"):
            raise PortTaken(watch.log_tail())
    except BaseException:
        watch.stop()
        raise
    return watch, url


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
