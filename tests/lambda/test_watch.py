"""Tests `make watch`: `cargo lambda watch` runs the functions and sends them small requests.

No other test uses it, because it confirms a response before it has read it, and some responses of
several MB never arrive.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.engine import Engine, start_engine
from tests.support.processes import ChildProcess, PortTaken, child_environment, start_on_own_port, wait_until
from tests.support.s3 import LocalS3
from tests.support.servers import binary

from .conftest import REPOSITORY, function_settings

#: Timeout that is long enough for a build, and for waiting for cargo's build lock.
_PATIENCE_SECONDS = 1_800

#: cargo finds its subcommand `lambda` next to this Python.
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


_PASSWORD = "correct horse battery"


# Slow, because it compiles the function with all dependencies: cargo lambda builds a single
# package, whose dependencies then have different features.
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["none", "basic"])
def test_small_requests_reach_the_functions(mode: str, tmp_path: Path, s3: LocalS3):
    engine = start_engine(tmp_path, tmp_path / "data")
    try:
        settings = function_settings(engine, s3.make_bucket(f"watched-{mode}"), tmp_path)
        settings |= {"ACCESS_MODE": mode, "ACCESS_TABLE_NAME": "mlflow-access"}
        # The port is specified, because the watch does not print a port that it chooses itself.
        watch, url = start_on_own_port(lambda port: _start(settings, tmp_path / "watch.log", port))
        try:
            if mode == "basic":
                # The function `auth` is built by its first request.
                page = requests.get(f"{url}/signin", timeout=_PATIENCE_SECONDS)
                assert "mlflow-serverless admin create" in page.text
                _make_administrator(engine)
                assert _search(url).status_code == 401
            credentials = ("admin", _PASSWORD) if mode == "basic" else None
            assert requests.get(f"{url}/version", auth=credentials, timeout=60).text == "3.17.2"
            found = _search(url, credentials).json()
            assert [experiment["name"] for experiment in found["experiments"]] == ["Default"]
        finally:
            watch.stop()
    finally:
        engine.process.stop()


def _search(url: str, credentials: tuple[str, str] | None = None) -> requests.Response:
    path = f"{url}/api/2.0/mlflow/experiments/search"
    return requests.post(path, json={"max_results": 1}, auth=credentials, timeout=60)


def _make_administrator(engine: Engine) -> None:
    place = ["--dynamodb-endpoint", engine.url, "--table", "mlflow", "--access-table", "mlflow-access"]
    keys = {"AWS_ACCESS_KEY_ID": engine.access_key, "AWS_SECRET_ACCESS_KEY": engine.secret, "AWS_REGION": "local"}
    command = [str(binary()), "admin", "create", "admin", *place]
    subprocess.run(command, input=f"{_PASSWORD}\n", text=True, check=True, capture_output=True, timeout=120, env=child_environment(**keys))


def _start(settings: dict[str, str], log: Path, port: int) -> tuple[ChildProcess, str]:
    """Starts the watch. Returns it with its URL, once the first function responds."""
    url = f"http://127.0.0.1:{port}"
    command = ["cargo", "lambda", "watch", "--ignore-changes", "--disable-cors"]
    command += ["--invoke-address", "127.0.0.1", "--invoke-port", str(port)]
    watch = ChildProcess(command, child_environment(PATH=_PATH, **settings), REPOSITORY, log)
    try:
        # If the port is taken, the watch ends immediately without an error message.
        wait_until(lambda: _listens(port) or not watch.is_running, "listening", watch)
        # The first request waits until the function is built and started. Requests that time out
        # would be queued and answered first.
        if not (watch.is_running and requests.get(f"{url}/health", timeout=_PATIENCE_SECONDS).text == "OK"):
            raise PortTaken(watch.log_tail())
    except BaseException:
        watch.stop()
        raise
    return watch, url


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
