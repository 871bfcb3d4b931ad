"""Tests that `make deploy` refuses changes that would lose data or change a URL, and that it begins
with its checks.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import WaiterError

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
from changes import refused  # noqa: E402
from stack import Stack  # noqa: E402


def _change(kind: str, name: str, action: str, replacement: str | None = None) -> dict:
    said = {"ResourceType": kind, "LogicalResourceId": name, "Action": action}
    return {"ResourceChange": said | ({"Replacement": replacement} if replacement else {})}


@pytest.mark.parametrize(
    "kind, name", [("AWS::DynamoDB::Table", "Table"), ("AWS::S3::Bucket", "ArtifactBucket"), ("AWS::ApiGatewayV2::Api", "UsersApi")]
)
def test_what_holds_data_or_a_url_is_not_replaced(kind: str, name: str):
    for change in [_change(kind, name, "Modify", "True"), _change(kind, name, "Modify", "Conditional"), _change(kind, name, "Remove")]:
        [why] = refused([change], set())
        assert name in why and f"ALLOW={name}" in why
        assert refused([change], {name}) == []
    assert refused([_change(kind, name, "Modify", "False"), _change(kind, name, "Add")], set()) == []


def test_an_archive_has_another_command():
    [why] = refused([_change("AWS::DynamoDB::Table", "Table", "Remove")], set(), "./deploy --allow ")
    assert why.endswith("./deploy --allow Table") and "make" not in why


def test_functions_may_be_replaced():
    assert refused([_change("AWS::Lambda::Function", "UiFunction", "Modify", "True")], set()) == []


def _check(directory: Path, **environment: str) -> subprocess.CompletedProcess:
    """Runs the command on a machine without AWS tools and settings."""
    (directory / "samconfig.toml").write_text((REPOSITORY / "samconfig.toml").read_text())
    command = [sys.executable, str(REPOSITORY / "tools/deploy"), "--check", "--built"]
    environment |= {"PATH": "/usr/bin:/bin", "HOME": str(directory), "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300)


def test_a_missing_region_is_told_before_anything_is_built(tmp_path: Path):
    done = _check(tmp_path)
    assert done.returncode == 1
    assert "Nothing was changed" in done.stderr and "export AWS_REGION=" in done.stderr


def test_the_variable_that_is_told_is_read(tmp_path: Path):
    done = _check(tmp_path, AWS_REGION="eu-central-1")
    assert done.returncode == 1
    assert "No region" not in done.stderr and "AWS cannot identify the caller" in done.stderr


def test_deploying_installs_only_what_it_needs():
    done = subprocess.run(["make", "--dry-run", "--always-make", "deploy"], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "tests/requirements.txt" not in done.stdout
    # Checks run before the interface is downloaded.
    assert done.stdout.index("tools/deploy --environment default    --check") < done.stdout.index("fetch_ui.py")


@pytest.mark.parametrize(
    "target, command",
    [
        (["admin", "NAME=ann"], 'tools/deploy --environment default --admin "ann"'),
        (["admin", "NAME=ann", "ENVIRONMENT=dev"], 'tools/deploy --environment dev --admin "ann"'),
        (["delete", "STACK=mlflow"], 'tools/deploy --environment default --delete "mlflow"'),
        (["deploy", "ROLE=arn:aws:iam::1:role/r"], "--role-arn arn:aws:iam::1:role/r"),
        (["publish", "ARCHIVE=a.tar.gz", "BUCKETS=b", "REGIONS=r1 r2"], "tools/release/publish.py a.tar.gz --buckets b --regions r1 r2"),
    ],
)
def test_targets_of_make_run_the_tools(target: list[str], command: str):
    done = subprocess.run(["make", "--dry-run", *target], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and command in done.stdout, f"{done.stdout}\n{done.stderr}"


def test_a_failed_update_says_what_failed_in_it_and_not_before():
    def event(name: str, status: str, kind: str = "AWS::Lambda::Function") -> dict:
        return {"LogicalResourceId": name, "ResourceStatus": status, "ResourceType": kind, "ResourceStatusReason": f"why {name}"}

    whole = "AWS::CloudFormation::Stack"
    pages = [
        [event("mlflow", "UPDATE_ROLLBACK_COMPLETE", whole)],
        [event("UiFunction", "UPDATE_FAILED"), event("mlflow", "UPDATE_IN_PROGRESS", whole), event("OldFunction", "UPDATE_FAILED")],
    ]

    class Client:
        def get_waiter(self, _: str) -> "Client":
            return self

        def wait(self, **_: object) -> None:
            raise WaiterError("stack_update_complete", "failed", {})

        def get_paginator(self, _: str) -> "Client":
            return self

        def paginate(self, **_: object) -> list[dict]:
            return [{"StackEvents": page} for page in pages]

        def execute_change_set(self, **_: object) -> None:
            pass

    with pytest.raises(SystemExit) as ended:
        Stack(Client(), "mlflow").execute("change set")
    assert "UiFunction: why UiFunction" in str(ended.value) and "OldFunction" not in str(ended.value)
