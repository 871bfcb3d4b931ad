"""A server with users for the browser to sign in to: one process, or the functions behind a gateway, with a bucket."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from playwright.sync_api import Page
from samtranslator.yaml_helper import yaml_parse

from tests.browser import ui
from tests.support.engine import Engine, start_engine
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http_server import serving
from tests.support.runtime_api import Function
from tests.support.s3 import LocalS3
from tests.support.servers import ARTIFACT_ROOT, ServerlessMlflow, binary

_REPOSITORY = Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 300
PASSWORD = "correct horse battery"


@contextmanager
def process(directory: Path, *options: str) -> Iterator[str]:
    """Runs `serve` with the user interface, and yields its URL. With `--auth basic`, `admin` is an administrator."""
    if "--auth" in options:
        _create_administrator("--data", str(directory / "server/data"))
    server = ServerlessMlflow(directory / "server", options=(*options, "--ui", str(ui.directory())), artifact_root="mlflow-artifacts:/")
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def functions(directory: Path, s3: LocalS3) -> Iterator[str]:
    """Runs all functions with users, and yields the gateway's URL. `admin` is an administrator."""
    with ExitStack() as stops:
        engine = start_engine(directory, directory / "data")
        stops.callback(engine.process.stop)
        bucket = s3.make_bucket(f"{urlsplit(ARTIFACT_ROOT).netloc}-{uuid4().hex}")
        settings = _settings(engine, s3.url, bucket.name)
        place = ("--dynamodb-endpoint", engine.url, "--table", "mlflow", "--access-table", "mlflow-access")
        _create_administrator(*place, env=settings)
        names = [crate.parent.name for crate in _REPOSITORY.glob("functions/*/Cargo.toml")]
        programs = {
            name: Function(_REPOSITORY / "target/debug" / name, directory, settings, _PATIENCE_SECONDS) for name in names
        }
        for function in programs.values():
            stops.callback(function.stop)
        routes = read_routes(yaml_parse((_REPOSITORY / "template.yaml").read_text()))
        gateway = Gateway(routes, programs, Limits(seconds=_PATIENCE_SECONDS))
        url = stops.enter_context(serving(gateway.answer))
        bucket.allow_pages([url])
        yield url


def sign_in(page: Page, name: str, password: str) -> None:
    """Fills in the form of the page to sign in."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def _create_administrator(*place: str, env: dict[str, str] | None = None) -> None:
    command = [str(binary()), "admin", "create", "admin", *place]
    subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, capture_output=True, timeout=120, env=env)


def _settings(engine: Engine, s3: str, bucket: str) -> dict[str, str]:
    return {
        "DYNAMODB_ENDPOINT": engine.url,
        "ACCESS_MODE": "basic",
        "DEFAULT_PERMISSION": "NO_PERMISSIONS",
        "TABLE_NAME": "mlflow",
        "ACCESS_TABLE_NAME": "mlflow-access",
        "ARTIFACT_ROOT": f"s3://{bucket}/root",
        "ARTIFACTS_ORIGIN": s3,
        "AWS_ENDPOINT_URL_S3": s3,
        "AWS_ACCESS_KEY_ID": engine.access_key,
        "AWS_SECRET_ACCESS_KEY": engine.secret,
        "AWS_REGION": "local",
        "UI_DIRECTORY": str(ui.directory()),
    }
