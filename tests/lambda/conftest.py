"""A local Lambda: the tests' API Gateway in front of the functions' programs, which use the engine
over HTTP.
"""

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
from tests.support.ui_build import installed_build

REPOSITORY = Path(__file__).resolve().parents[2]

#: Timeout of a call. It is 30 s in AWS. Here the functions are not optimized and share the machine
#: with all other tests. The limits are tested in `tests/support`.
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class LocalLambda:
    """A running local Lambda, with the URL of the gateway, and the engine with the directory of its
    data. The engine does not feed the indexer.

    The functions store artifacts in the bucket, below the path of ARTIFACT_ROOT.
    """

    gateway: str
    #: URL of the API that invokes functions by name.
    lambda_api: str
    functions: Mapping[str, Function]
    engine: Engine
    data: Path
    bucket: Bucket
    #: Directory of the user interface, as in the functions' layer.
    ui: Path


@pytest.fixture(scope="session")
def local_lambda(tmp_path_factory: pytest.TempPathFactory, s3: LocalS3) -> Iterator[LocalLambda]:
    """Runs the local Lambda with an empty table."""
    bucket = s3.make_bucket(urlsplit(ARTIFACT_ROOT).netloc)
    directory = tmp_path_factory.mktemp("lambda")
    with ExitStack() as stops:
        ui = installed_build()
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
    """Returns the environment variables of functions that store their data in the engine and the
    bucket.
    """
    return {
        "DYNAMODB_ENDPOINT": engine.url,
        "ACCESS_MODE": "none",
        "TABLE_NAME": "mlflow",
        "ARTIFACT_ROOT": ARTIFACT_ROOT,
        # The bucket accepts the engine's key, because it does not verify signatures.
        "AWS_ENDPOINT_URL_S3": bucket.s3.url,
        "AWS_ACCESS_KEY_ID": engine.access_key,
        "AWS_SECRET_ACCESS_KEY": engine.secret,
        "AWS_REGION": "local",
        "UI_DIRECTORY": str(ui),
    }


@pytest.fixture(scope="session")
def gateway(local_lambda: LocalLambda) -> str:
    """Returns the URL at which requests are converted to events."""
    return local_lambda.gateway


@pytest.fixture
def invoke_raw(local_lambda: LocalLambda) -> Callable[..., Any]:
    """Returns a function that invokes a function with one of the sample events, with some texts
    replaced, and returns its result.
    """

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> Any:
        text = (REPOSITORY / "events" / f"{name}.json").read_text()
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        return local_lambda.functions[function].invoke(json.loads(text))

    return send


@pytest.fixture
def invoke(invoke_raw: Callable[..., Any]) -> Callable[..., tuple[int, Any]]:
    """Returns a function that invokes a function behind API Gateway with a sample event, and
    returns the status and the body of the client's response.
    """

    def send(function: str, name: str, replaced: dict[str, str] | None = None) -> tuple[int, Any]:
        answer = invoke_raw(function, name, replaced)
        return answer["statusCode"], body_of(answer)

    return send


def body_of(answer: dict) -> Any:
    """Returns the body that API Gateway creates from a function's result. Parses it if
    it is JSON.
    """
    headers, body = answer["headers"], answer["body"].encode()
    if answer["isBase64Encoded"]:
        body = base64.b64decode(body)
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return json.loads(body) if headers["content-type"].startswith("application/json") else body.decode()
