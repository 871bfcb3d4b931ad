"""A local Lambda: API Gateway as the tests have it, the functions' programs behind it, and the engine over HTTP behind them."""

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.support.engine import Engine, start_engine
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http_server import serving
from tests.support.invoke_api import invoking
from tests.support.runtime_api import Function
from tests.support.s3 import Bucket, LocalS3
from tests.support.servers import ARTIFACT_ROOT
from tests.support.ui_build import lay_build

REPOSITORY = Path(__file__).resolve().parents[2]

#: In AWS a call has 30 s. Here functions are not optimized, and share the machine with all other tests; `tests/support` has the tests of limits.
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class LocalLambda:
    """Where the gateway listens, and the engine with the folder of its data. It does not feed the indexer.

    The functions keep artifacts in the bucket, below the path of ARTIFACT_ROOT.
    """

    gateway: str
    #: Where functions are called by their names.
    lambda_api: str
    functions: Mapping[str, Function]
    engine: Engine
    data: Path
    bucket: Bucket
    #: The user interface, as its layer has it.
    ui: Path


@pytest.fixture(scope="session")
def local_lambda(tmp_path_factory: pytest.TempPathFactory, s3: LocalS3) -> Iterator[LocalLambda]:
    """All of it, over an empty table."""
    bucket = s3.make_bucket(urlsplit(ARTIFACT_ROOT).netloc)
    directory = tmp_path_factory.mktemp("lambda")
    with ExitStack() as stops:
        ui = lay_build(directory / "layer")
        engine = start_engine(directory, directory / "data")
        stops.callback(engine.process.stop)
        settings = function_settings(engine, bucket, ui)
        functions = {
            crate.parent.name: Function(REPOSITORY / "target/debug" / crate.parent.name, directory, settings, PATIENCE_SECONDS)
            for crate in REPOSITORY.glob("functions/*/Cargo.toml")
        }
        for function in functions.values():
            stops.callback(function.stop)
        routes = read_routes(yaml_parse((REPOSITORY / "template.yaml").read_text()))
        gateway = Gateway(routes, functions, Limits(seconds=PATIENCE_SECONDS))
        url = stops.enter_context(serving(gateway.answer))
        lambda_api = stops.enter_context(serving(invoking(functions)))
        yield LocalLambda(url, lambda_api, functions, engine, directory / "data", bucket, ui)


def function_settings(engine: Engine, bucket: Bucket, ui: Path) -> dict[str, str]:
    """The environment variables of functions that keep their data in the engine and in the bucket."""
    return {
        "DYNAMODB_ENDPOINT": engine.url,
        "ACCESS_MODE": "none",
        "TABLE_NAME": "mlflow",
        "ARTIFACT_ROOT": ARTIFACT_ROOT,
        # The bucket takes the same key: it does not look at it.
        "AWS_ENDPOINT_URL_S3": bucket.s3.url,
        "AWS_ACCESS_KEY_ID": engine.access_key,
        "AWS_SECRET_ACCESS_KEY": engine.secret,
        "AWS_REGION": "local",
        "UI_DIRECTORY": str(ui),
    }


@pytest.fixture(scope="session")
def gateway(local_lambda: LocalLambda) -> str:
    """The URL under which requests become events."""
    return local_lambda.gateway


@pytest.fixture
def invoke_raw(local_lambda: LocalLambda) -> Callable[..., Any]:
    """Hands a function one of the sample events, with some texts in it replaced; returns what it answers."""

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> Any:
        text = (REPOSITORY / "events" / f"{name}.json").read_text()
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        return local_lambda.functions[function].invoke(json.loads(text))

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
