"""Tests of artifacts with a signing client: small files pass through the gateway, and larger ones
are sent directly to a bucket, as configured by the package.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from mlflow_serverless_auth import SigV4

from tests.support import warm
from tests.support.http_server import Answer, Received, serving
from tests.support.processes import child_environment
from tests.support.s3 import LocalS3
from tests.support.servers import ServerlessMlflow

from .conftest import VERIFIER
from .gateway import forwarding, strict

_SETTING = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"
_SIZES = {"small": 4_499_999, "large": 4_500_000}
_SCRIPT = f"""
import os, pathlib, sys
import mlflow
from mlflow import MlflowClient
client = MlflowClient()
run = client.create_run("0").info.run_id
for name, size in {_SIZES}.items():
    pathlib.Path(name).write_bytes(os.urandom(1000) + bytes(size - 1000))
    client.log_artifact(run, name)
for name in {list(_SIZES)}:
    fetched = pathlib.Path(client.download_artifacts(run, name, str(pathlib.Path("fetched").absolute())))
    assert fetched.read_bytes() == pathlib.Path(name).read_bytes()
print(os.environ["{_SETTING}"], sorted(file.path for file in client.list_artifacts(run)))
"""


class Deployed:
    """A strict gateway in front of a server whose artifacts are in a bucket. Records the received
    requests.
    """

    def __init__(self, server: ServerlessMlflow):
        self.received: list[Received] = []
        self.forward = forwarding(server.url)
        self.url = ""

    def answer(self, request: Received) -> Answer:
        self.received.append(request)
        return self.forward(request)


@pytest.fixture
def deployed(aws: None, s3: LocalS3, tmp_path: Path) -> Iterator[Deployed]:
    bucket = s3.make_bucket(f"signed-{abs(hash(tmp_path))}")
    server = ServerlessMlflow(
        tmp_path / "server",
        in_memory=True,
        options=["--artifacts-destination", f"s3://{bucket.name}"],
        artifact_root="mlflow-artifacts:/",
        environment=s3.environment,
    )
    deployed = Deployed(server)
    with serving(strict(VERIFIER, deployed.answer)) as deployed.url:
        yield deployed
    server.stop()


def _run(deployed: Deployed, directory: Path, **settings: str) -> str:
    (directory / "fetched").mkdir()
    environment = child_environment(MLFLOW_TRACKING_URI=deployed.url, MLFLOW_TRACKING_AUTH="mlflow-serverless", **settings)
    process = warm.run(["-c", _SCRIPT], environment, directory)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_no_request_is_longer_than_a_lambda_takes(deployed: Deployed, tmp_path: Path):
    assert _run(deployed, tmp_path) == "4500000 ['large', 'small']\n"
    longest = max(len(request.body) for request in deployed.received)
    assert longest == _SIZES["small"]


def test_no_file_is_called_a_text(deployed: Deployed, auth: SigV4):
    """Checks that files are not sent with a text type, for which API Gateway corrupts content that
    is not UTF-8.
    """
    url = f"{deployed.url}/api/2.0/mlflow-artifacts/artifacts/0/x/file.csv"
    headers = {"Content-Type": "text/csv"}
    requests.put(url, data="café".encode("latin-1"), headers=headers, auth=auth, timeout=60).raise_for_status()
    [received] = deployed.received
    assert received.values("content-type") == ["application/octet-stream"]


def test_what_the_user_has_set_stays(deployed: Deployed, tmp_path: Path):
    assert _run(deployed, tmp_path, **{_SETTING: "9000000"}) == "9000000 ['large', 'small']\n"
    assert max(len(request.body) for request in deployed.received) == _SIZES["large"]


def test_a_signed_download_that_is_sent_to_the_bucket(deployed: Deployed, auth: SigV4):
    url = f"{deployed.url}/api/2.0/mlflow-artifacts/artifacts/0/x/file"
    requests.put(url, data=b"content", auth=auth, timeout=60).raise_for_status()
    answer = requests.get(url, auth=auth, timeout=60)
    assert (answer.content, [step.status_code for step in answer.history]) == (b"content", [307])
    assert not [name for name in answer.request.headers if name.lower().startswith(("authorization", "x-amz-"))]
