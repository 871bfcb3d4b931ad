"""Stock MLflow's client without this project's package: the functions behind two gateways, one for
users and one that requires signed requests.

Like API Gateway, both gateways treat bodies with a text type as text, and limit the size of a
request.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from samtranslator.yaml_helper import yaml_parse

from tests.support import warm
from tests.support.engine import start_engine
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http_server import serving
from tests.support.processes import child_environment
from tests.support.runtime_api import Function
from tests.support.s3 import local_s3
from tests.support.servers import binary

from .conftest import REGION, VERIFIER
from .gateway import strict

#: All tests run in one process, so that the functions start only once.
pytestmark = pytest.mark.xdist_group("clients of users behind gateways")

_REPOSITORY = Path(__file__).resolve().parents[2]
_PASSWORD = "correct horse battery"
_PATIENCE_SECONDS = 300
_ROLE = "arn:aws:sts::123456789012:assumed-role/train"
#: The context that the verifier's gateway passes on for callers who sign.
_IAM = {"iam": {"accountId": "123456789012", "userArn": f"{_ROLE}/chosen", "userId": "AROAX:chosen"}}
#: Setting that the operator guide recommends for clients without the package.
_SETTING = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"

_FILES = """
import pathlib, sys
import mlflow
from mlflow import MlflowClient
files = {"empty.txt": b"", "five.bin": bytes(range(256)) * 20_480, "latin.csv": "Größe;café\\n".encode("latin-1"), "text.txt": "Größe\\n".encode()}
client = MlflowClient()
mlflow.set_experiment(sys.argv[1])
with mlflow.start_run() as run:
    for name, content in files.items():
        pathlib.Path(name).write_bytes(content)
        try:
            client.log_artifact(run.info.run_id, name)
        except Exception as error:
            print(name, str(error).replace("\\n", " "))
for file in client.list_artifacts(run.info.run_id):
    fetched = pathlib.Path(client.download_artifacts(run.info.run_id, file.path, str(pathlib.Path("fetched").absolute())))
    print(file.path, fetched.read_bytes() == files[file.path])
"""


@dataclass
class Deployed:
    """The stack with `Users=on`: its two APIs, and a command that uses its tables."""

    users: str
    signed: str
    settings: dict[str, str]

    def command(self, *arguments: str) -> str:
        place = ["--dynamodb-endpoint", self.settings["DYNAMODB_ENDPOINT"], "--table", "mlflow", "--access-table", "mlflow-access"]
        environment = child_environment(**{name: value for name, value in self.settings.items() if name.startswith("AWS_")})
        command = [str(binary()), *arguments, *place]
        done = subprocess.run(
            command, input=f"{_PASSWORD}\n", capture_output=True, text=True, timeout=120, env=environment, check=True
        )
        return done.stdout.strip()

    def as_admin(self, version: str, path: str, body: dict) -> dict:
        answer = requests.post(f"{self.users}/api/{version}/mlflow/{path}", json=body, auth=("admin", _PASSWORD), timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("deployed")
    with ExitStack() as stops:
        s3 = stops.enter_context(local_s3())
        bucket = s3.make_bucket(directory.name)
        engine = start_engine(directory, directory / "data")
        stops.callback(engine.process.stop)
        settings = {
            "DYNAMODB_ENDPOINT": engine.url,
            "ACCESS_MODE": "both",
            "DEFAULT_PERMISSION": "NO_PERMISSIONS",
            "TABLE_NAME": "mlflow",
            "ACCESS_TABLE_NAME": "mlflow-access",
            "ARTIFACT_ROOT": "mlflow-artifacts:/",
            "ARTIFACTS_DESTINATION": f"s3://{bucket.name}/root",
            "AWS_ENDPOINT_URL_S3": s3.url,
            "AWS_ACCESS_KEY_ID": engine.access_key,
            "AWS_SECRET_ACCESS_KEY": engine.secret,
            "AWS_REGION": "local",
        }
        functions = {
            crate.parent.name: Function(_REPOSITORY / "target/debug" / crate.parent.name, directory, settings, _PATIENCE_SECONDS)
            for crate in _REPOSITORY.glob("functions/*/Cargo.toml")
        }
        for function in functions.values():
            stops.callback(function.stop)
        routes = read_routes(yaml_parse((_REPOSITORY / "template.yaml").read_text()))
        limits = Limits(seconds=_PATIENCE_SECONDS)
        users = stops.enter_context(serving(Gateway(routes, functions, limits).answer))
        signed = stops.enter_context(serving(strict(VERIFIER, Gateway(routes, functions, limits, authorizer=_IAM).answer)))
        deployed = Deployed(users, signed, settings)
        deployed.command("admin", "create", "admin")
        # The example always uses this experiment, regardless of the caller.
        experiment = deployed.as_admin("2.0", "experiments/create", {"name": "quickstart"})["experiment_id"]
        for name in ("ann", "trainer"):
            deployed.as_admin("2.0", "users/create", {"username": name, "password": _PASSWORD})
            grant = {"username": name, "resource_type": "experiment", "resource_id": experiment, "permission": "EDIT"}
            deployed.as_admin("3.0", "users/permissions/grant", grant)
        deployed.command("admin", "map", f"{_ROLE}/anything", "trainer")
        yield deployed


def _environment(by: str, deployed: Deployed) -> dict[str, str]:
    """Returns the client's environment variables for a server and a caller."""
    match by:
        case "Basic":
            return {"MLFLOW_TRACKING_URI": deployed.users, "MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": _PASSWORD}
        case "Bearer":
            token = deployed.command("token", "create", "ann", "of a test")
            return {"MLFLOW_TRACKING_URI": deployed.users, "MLFLOW_TRACKING_TOKEN": token}
        case "SigV4":
            return {
                "MLFLOW_TRACKING_URI": deployed.signed,
                "MLFLOW_TRACKING_AWS_SIGV4": "true",
                # The client only signs requests whose file has been read into memory. With this
                # setting, files are sent to presigned URLs, which need no signature.
                _SETTING: "1",
                "AWS_ACCESS_KEY_ID": VERIFIER.access_key,
                "AWS_SECRET_ACCESS_KEY": VERIFIER.secret_key,
                "AWS_SESSION_TOKEN": VERIFIER.token or "",
                "AWS_DEFAULT_REGION": REGION,
            }
        case other:
            raise ValueError(other)


def _run(program: list[str], directory: Path, **environment: str) -> list[str]:
    directory.mkdir()
    settings = child_environment(MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true", MLFLOW_HTTP_REQUEST_MAX_RETRIES="0", **environment)
    done = warm.run(program, settings, directory)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("by", [pytest.param("Basic", marks=pytest.mark.slow), pytest.param("Bearer", marks=pytest.mark.slow), "SigV4"])
def test_the_example_and_files_of_each_kind(by: str, deployed: Deployed, tmp_path: Path) -> None:
    caller = _environment(by, deployed)
    said = _run([str(_REPOSITORY / "examples/quickstart.py")], tmp_path / "example", **caller)
    assert said == (_REPOSITORY / "examples/quickstart.expected").read_text().splitlines()
    # With this setting, files that are not empty are sent to the bucket directly, so that no
    # gateway processes them.
    said = _run(["-c", _FILES, by], tmp_path / "files", **caller | {_SETTING: "1"})
    if by == "SigV4":
        assert said.pop(0).startswith("empty.txt ")
    else:
        assert said.pop(0) == "empty.txt True"
    assert said == ["five.bin True", "latin.csv True", "text.txt True"]


def test_without_the_setting_no_file_is_stored_otherwise_than_it_was(deployed: Deployed, tmp_path: Path) -> None:
    said = _run(["-c", _FILES, "without"], tmp_path / "files", **_environment("Basic", deployed))
    refused = {line.split()[0]: line for line in said[:2]}
    assert refused.keys() == {"five.bin", "latin.csv"}
    assert "413" in refused["five.bin"] and "Send files as application/octet-stream." in refused["latin.csv"]
    assert said[2:] == ["empty.txt True", "text.txt True"]
