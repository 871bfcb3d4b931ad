"""Credentials nobody else has, and servers that accept only what is signed with them."""

import os

# Before mlflow is imported anywhere: nothing leaves this machine.
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
    """No test sees the credentials of who runs it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def aws(no_aws_configuration: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a caller whom the verifier knows."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", VERIFIER.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", VERIFIER.secret_key)
    monkeypatch.setenv("AWS_SESSION_TOKEN", VERIFIER.token)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture
def auth(aws: None) -> SigV4:
    """A signer of that caller's."""
    return SigV4(Session())


@pytest.fixture(scope="session")
def echoing() -> Iterator[str]:
    """The URL of a strict gateway that answers with what it has understood."""
    with serving(strict(VERIFIER, echo)) as url:
        yield url
