"""A local Lambda: `cargo lambda watch` in front of the functions, the engine over HTTP behind them."""

import base64
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.engine import Engine, start_engine
from tests.support.processes import ChildProcess, PortTaken, child_environment, start_on_own_port, wait_until
from tests.support.s3 import Bucket, LocalS3
from tests.support.servers import ARTIFACT_ROOT, answers
from tests.support.ui_build import lay_build

REPOSITORY = Path(__file__).resolve().parents[2]

#: Long enough for cargo to wait for another build.
PATIENCE_SECONDS = 300

#: cargo finds its subcommand `lambda` beside this Python.
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@dataclass(frozen=True)
class LocalLambda:
    """Where the router of `cargo lambda watch` listens, and the engine with the folder of its data. It does not feed the indexer.

    The functions keep artifacts in the bucket, below the path of ARTIFACT_ROOT.
    """

    gateway: str
    engine: Engine
    data: Path
    bucket: Bucket
    #: The user interface, as its layer has it.
    ui: Path


@pytest.fixture(scope="session")
def local_lambda(tmp_path_factory: pytest.TempPathFactory, s3: LocalS3) -> Iterator[LocalLambda]:
    """Both, over an empty table."""
    bucket = s3.make_bucket(urlsplit(ARTIFACT_ROOT).netloc)
    # `cargo lambda watch` prints no port that it has chosen itself.
    running, stops = start_on_own_port(lambda port: _start(tmp_path_factory.mktemp("lambda"), bucket, port))
    with stops:
        yield running


def _start(directory: Path, bucket: Bucket, port: int) -> tuple[LocalLambda, ExitStack]:
    with ExitStack() as stops:
        url, data = f"http://127.0.0.1:{port}", directory / "data"
        ui = lay_build(directory / "layer")
        engine = start_engine(directory, data)
        stops.callback(engine.process.stop)
        environment = child_environment(
            PATH=_PATH,
            DYNAMODB_ENDPOINT=engine.url,
            TABLE_NAME="mlflow",
            ARTIFACT_ROOT=ARTIFACT_ROOT,
            # The bucket takes the same key: it does not look at it.
            AWS_ENDPOINT_URL_S3=bucket.s3.url,
            AWS_ACCESS_KEY_ID=engine.access_key,
            AWS_SECRET_ACCESS_KEY=engine.secret,
            AWS_REGION="local",
            UI_DIRECTORY=str(ui),
        )
        command = ["cargo", "lambda", "watch", "--ignore-changes", "--disable-cors"]
        command += ["--invoke-address", "127.0.0.1", "--invoke-port", str(port)]
        watch = ChildProcess(command, environment, REPOSITORY, directory / "watch.log")
        stops.callback(watch.stop)
        # The function is started by its first request. Where the port is taken, the watch ends at once and does not say why.
        wait_until(lambda: answers(url) or not watch.is_running, "answer to /health", watch, PATIENCE_SECONDS)
        if not watch.is_running:
            raise PortTaken(watch.log_tail())
        return LocalLambda(url, engine, data, bucket, ui), stops.pop_all()


@pytest.fixture(scope="session")
def gateway(local_lambda: LocalLambda) -> str:
    """The URL under which requests become events."""
    return local_lambda.gateway


@pytest.fixture
def invoke_raw(gateway: str, tmp_path: Path) -> Callable[..., Any]:
    """Hands a function one of the sample events, with some texts in it replaced; returns what it answers."""

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> Any:
        text = (REPOSITORY / "events" / f"{name}.json").read_text()
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        event = tmp_path / f"{name}.json"
        event.write_text(text)
        command = ["cargo", "lambda", "invoke", function, "--data-file", str(event)]
        command += ["--invoke-address", "127.0.0.1", "--invoke-port", gateway.rpartition(":")[2]]
        # The first call of a function waits until it is built.
        environment = child_environment(PATH=_PATH)
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return send


@pytest.fixture
def invoke(invoke_raw: Callable[..., Any]) -> Callable[..., tuple[int, Any]]:
    """The same for a function behind API Gateway; returns status and body of the answer that a client gets."""

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> tuple[int, Any]:
        answer = invoke_raw(function, name, replaced)
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
