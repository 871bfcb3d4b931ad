"""A local Lambda: `cargo lambda watch` in front of the functions, the engine over HTTP behind them."""

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ChildProcess, child_environment, free_port, wait_until
from tests.support.servers import ARTIFACT_ROOT, answers, binary

REPOSITORY = Path(__file__).resolve().parents[2]

#: Long enough for cargo to wait for another build.
_PATIENCE_SECONDS = 300

#: cargo finds its subcommand `lambda` beside this Python.
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL under which the router of `cargo lambda watch` turns requests into events."""
    directory = tmp_path_factory.mktemp("lambda")
    with ExitStack() as stops:
        command = [str(binary()), "engine", "--port", "0", "--memory"]
        engine = ChildProcess(command, child_environment(), directory, directory / "engine.log")
        stops.callback(engine.stop)
        # Printed when the table is made.
        endpoint = wait_until(lambda: re.search(r"http://\S+", engine.log_text()), "URL of the engine", engine)
        port = free_port()
        environment = child_environment(
            PATH=_PATH,
            DYNAMODB_ENDPOINT=endpoint[0],
            TABLE_NAME="mlflow",
            ARTIFACT_ROOT=ARTIFACT_ROOT,
            AWS_ACCESS_KEY_ID="local",
            AWS_SECRET_ACCESS_KEY="local",
            AWS_REGION="local",
        )
        command = ["cargo", "lambda", "watch", "--ignore-changes"]
        command += ["--invoke-address", "127.0.0.1", "--invoke-port", str(port)]
        watch = ChildProcess(command, environment, REPOSITORY, directory / "watch.log")
        stops.callback(watch.stop)
        url = f"http://127.0.0.1:{port}"
        # The function is started by its first request.
        wait_until(lambda: answers(url), "answer to /health", watch, _PATIENCE_SECONDS)
        yield url


@pytest.fixture
def invoke(gateway: str, tmp_path: Path) -> Callable[..., tuple[int, Any]]:
    """Hands a function one of the sample events, with some texts in it replaced; returns status and body of its answer."""

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> tuple[int, Any]:
        text = (REPOSITORY / "events" / f"{name}.json").read_text()
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        event = tmp_path / f"{name}.json"
        event.write_text(text)
        command = ["cargo", "lambda", "invoke", function, "--data-file", str(event)]
        command += ["--invoke-address", "127.0.0.1", "--invoke-port", gateway.rpartition(":")[2]]
        process = subprocess.run(command, env=child_environment(PATH=_PATH), capture_output=True, text=True, timeout=60)
        assert process.returncode == 0, process.stderr
        answer = json.loads(process.stdout)
        return answer["statusCode"], body_of(answer)

    return send


def body_of(answer: dict) -> Any:
    """The body that API Gateway makes of a function's answer, parsed if it is JSON."""
    headers, body = answer["headers"], answer["body"].encode()
    if answer["isBase64Encoded"]:
        body = base64.b64decode(body)
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return json.loads(body) if headers["content-type"].startswith("application/json") else body.decode()
