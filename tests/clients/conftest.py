"""Fixtures with test credentials, and with servers that only accept requests signed with them."""

import os

# Set before mlflow is imported anywhere, so that no telemetry is sent.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.session import Session
from mlflow_serverless_auth import SigV4

from tests.support.http_server import serving

from .gateway import echo, strict
from .verifier import Verifier

REGION = "eu-test-1"
VERIFIER = Verifier("AKIDCLIENT", "secret/with+signs", REGION, token="token/with+signs=")


@pytest.fixture(autouse=True)
def no_aws_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides the AWS credentials of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def aws(no_aws_configuration: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the environment of a caller that the verifier accepts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", VERIFIER.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", VERIFIER.secret_key)
    monkeypatch.setenv("AWS_SESSION_TOKEN", VERIFIER.token)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture
def auth(aws: None) -> SigV4:
    """Returns a signer with that caller's credentials."""
    return SigV4(Session())


@pytest.fixture(scope="session")
def echoing() -> Iterator[str]:
    """Yields the URL of a strict gateway that responds with the parsed request."""
    with serving(strict(VERIFIER, echo)) as url:
        yield url
