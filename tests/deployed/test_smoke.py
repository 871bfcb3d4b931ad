"""Tests the smoke test of a stack in AWS with the emulator: it runs all checks that are possible
there, evaluates them, and cleans up.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from .conftest import Deployment
from .emulator import REPOSITORY
from .front import Caller, serving_api
from .steps import PASSWORD, administrator

#: The operator also calls the API.
_OPERATOR = Caller("operator", "test", "test")
_SECONDS = 1200


@pytest.fixture(scope="module")
def command(deployment: Deployment) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yields the program and its environment. The gateways' rate limit is lower than the rate of
    this machine, however busy it is.
    """
    administrator(deployment, "smoker")
    account = deployment.account
    with ExitStack() as stops:
        apis = deployment.stack.apis(RequestRate="4", RequestBurst="150")
        urls = {name: stops.enter_context(serving_api(account.emulator, api, _OPERATOR)) for name, api in apis.items()}
        arguments = ["--stack", deployment.stack.name, "--patience", "300", "--tracking-uri", urls["Api"], "--users-uri", urls["UsersApi"]]
        environment = account.emulator.operator | {
            "AWS_ENDPOINT_URL_S3": account.s3,
            "MLFLOW_TRACKING_USERNAME": "smoker",
            "MLFLOW_TRACKING_PASSWORD": PASSWORD,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
        }
        yield [sys.executable, "-m", "tools.smoke", *arguments], environment


#: The expected outcomes with the emulator and the tests' gateway.
_OUTCOMES = {
    "cold starts": "no report",
    "signatures": "encoded twice",
    "encoded percent": "decoded twice",
    "two slashes": "tracking alone",
    "lengths": "413",
    "empty files": "both are taken",
    "gzip of JSON": "broken, and refused",
    "DELETE with a body": "deleted",
    "challenge": "renamed",
    "cookies": "arrive",
    "client address": "the caller's",
    "warnings": "not asked",
    # In the emulator, GetTags does not return the tags that a stack has set.
    "tags": "not billed by tag",
    "removals in the stream": "delivered",
    "recovery": "enabled",
    "restoration": "not asked",
    # The emulator does not support conditions on leading keys.
    "leading keys": "not even for single calls",
    # The emulator does not process the body of an API.
    "settings of the gateway": "as asked",
    "rates": "limited",
}


@pytest.mark.slow
def test_a_whole_run(deployment: Deployment, command: tuple[list[str], dict[str, str]], tmp_path: Path) -> None:
    program, environment = command
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    kept = json.loads((tmp_path / "smoke.json").read_text())
    assert {check["name"]: check["outcome"] for check in kept["checks"]} == _OUTCOMES, done.stdout[-8000:]
    assert (kept["left"], kept["ended"]) == ([], None), done.stdout[-3000:]
    # The status is 1, because the emulator differs from AWS.
    assert done.returncode == 1, done.stderr
    assert 0 < kept["dollars at most"] < 1
    _nothing_is_left(deployment)


@pytest.mark.slow
def test_an_interrupted_run(deployment: Deployment, command: tuple[list[str], dict[str, str]], tmp_path: Path) -> None:
    program, environment = command
    only = ["--only", "DELETE with a body", "removals in the stream"]
    process = subprocess.Popen([*program, *only], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    watch = threading.Timer(_SECONDS, process.kill)
    watch.start()
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            # During the second check, which waits for the index.
            if line.startswith("DELETE with a body:"):
                os.kill(process.pid, signal.SIGTERM)
        assert process.wait(_SECONDS) == 1
    finally:
        watch.cancel()
        process.kill()
    kept = json.loads((tmp_path / "smoke.json").read_text())
    assert (kept["left"], kept["ended"]) == ([], "Interrupted by SIGTERM"), said
    _nothing_is_left(deployment)


@pytest.mark.slow
def test_a_filter_that_lets_no_removal_through(deployment: Deployment, command: tuple[list[str], dict[str, str]], tmp_path: Path) -> None:
    """Checks the report about a filter that drops removals. It takes three minutes."""
    functions = deployment.account.emulator.functions
    mapping = deployment.stack.resources("AWS::Lambda::EventSourceMapping")["IndexerMapping"]
    before = functions.get_event_source_mapping(UUID=mapping)["FilterCriteria"]
    without = [one for one in before["Filters"] if "OldImage" not in one["Pattern"]]
    assert len(without) == len(before["Filters"]) - 1
    program, environment = command
    functions.update_event_source_mapping(UUID=mapping, FilterCriteria={"Filters": without})
    try:
        only = ["--only", "removals in the stream"]
        done = subprocess.run([*program, *only], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    finally:
        functions.update_event_source_mapping(UUID=mapping, FilterCriteria=before)
    [check] = json.loads((tmp_path / "smoke.json").read_text())["checks"]
    assert check["outcome"] == "not delivered", done.stdout
    assert done.returncode == 1
    _nothing_is_left(deployment)


def _nothing_is_left(deployment: Deployment) -> None:
    """Checks the API, including deleted experiments, and the bucket."""
    sent = {"max_results": 100, "view_type": "ALL", "filter": "name LIKE 'smoke-test-%'"}
    found = requests.post(f"{deployment.users}/api/2.0/mlflow/experiments/search", json=sent, auth=("smoker", PASSWORD), timeout=300)
    assert found.json().get("experiments", []) == []
    outputs, emulator = deployment.stack.outputs, deployment.account.emulator
    listed = emulator.s3.list_objects_v2(Bucket=outputs["BucketName"]).get("Contents", [])
    assert [file["Key"] for file in listed if "smoke-test-" in file["Key"]] == []
