"""`make deploy` gives a new stack an API for users, and an old one only what it has."""

import datetime
import runpy

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from .conftest import REPOSITORY

_overrides = runpy.run_path(str(REPOSITORY / "tools/new_stack.py"))["overrides"]
_NEW = ["--parameter-overrides", "Users=on"]


@pytest.fixture
def cloud():
    client = boto3.client("cloudformation", "eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        yield client, stub


@pytest.mark.parametrize(
    "status, expected", [("CREATE_COMPLETE", []), ("UPDATE_ROLLBACK_COMPLETE", []), ("REVIEW_IN_PROGRESS", _NEW)]
)
def test_a_stack_that_exists_stays_as_it_is(cloud, status: str, expected: list[str]):
    client, stub = cloud
    stack = {"StackName": "mlflow", "StackStatus": status, "CreationTime": datetime.datetime(2026, 1, 1)}
    stub.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "mlflow"})
    assert _overrides(client, "mlflow") == expected


def test_a_new_stack_has_users(cloud):
    client, stub = cloud
    stub.add_client_error("describe_stacks", "ValidationError", "Stack with id mlflow does not exist")
    assert _overrides(client, "mlflow") == _NEW


@pytest.mark.parametrize("code, message", [("AccessDenied", "not allowed"), ("ValidationError", "the name is too long")])
def test_what_cannot_be_found_out_is_not_guessed(cloud, code: str, message: str):
    client, stub = cloud
    stub.add_client_error("describe_stacks", code, message)
    with pytest.raises(ClientError):
        _overrides(client, "mlflow")
