"""Tests what the checks of `make deploy` advise for each state of a stack, and what they do without
permissions.
"""

import sys
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import preflight  # noqa: E402
import states  # noqa: E402
from settings import Settings  # noqa: E402

_FAILED = ["TrackingFunction", "Api"]
_COMMAND = "aws cloudformation {} --stack-name mlflow"
#: The command that is advised in a state, or `None` if the stack can be updated.
_COMMANDS = {
    "CREATE_COMPLETE": None,
    "UPDATE_COMPLETE": None,
    "UPDATE_ROLLBACK_COMPLETE": None,
    "IMPORT_COMPLETE": None,
    "IMPORT_ROLLBACK_COMPLETE": None,
    # `sam deploy` creates such a stack.
    "REVIEW_IN_PROGRESS": None,
    "CREATE_FAILED": "delete-stack",
    "ROLLBACK_COMPLETE": "delete-stack",
    "ROLLBACK_FAILED": "delete-stack",
    "DELETE_FAILED": "delete-stack",
    "UPDATE_FAILED": "rollback-stack",
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
    "IMPORT_ROLLBACK_FAILED": "describe-stack-events",
    "DELETE_IN_PROGRESS": "wait stack-delete-complete",
}


def _statuses() -> list[str]:
    """Returns all states that CloudFormation has. A deleted stack is not found by its name."""
    shape = Session().get_service_model("cloudformation").shape_for("StackStatus")
    return [state for state in shape.enum if state != "DELETE_COMPLETE"]


@pytest.mark.parametrize("state", _statuses())
def test_each_state_has_its_command(state: str):
    said = states.problem(state, "mlflow", _FAILED)
    if state not in _COMMANDS:
        assert state.endswith("_IN_PROGRESS") and f"({state}): wait" in said
        return
    command = _COMMANDS[state]
    assert (said is None) is (command is None)
    if command:
        assert _COMMAND.format(command) in said and "not know" not in said


@pytest.mark.parametrize("state", ["UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED", "IMPORT_ROLLBACK_FAILED"])
def test_no_stack_that_clients_use_is_deleted(state: str):
    said = states.problem(state, "mlflow", _FAILED)
    assert "delete-stack" not in said and "Do not delete the stack" in said


def test_resources_that_failed_are_named():
    assert "--resources-to-skip Api TrackingFunction" in states.problem("UPDATE_ROLLBACK_FAILED", "mlflow", _FAILED)
    assert "--retain-resources Api TrackingFunction" in states.problem("DELETE_FAILED", "mlflow", _FAILED)
    assert "--retain-resources RESOURCE" in states.problem("DELETE_FAILED", "mlflow", [])


def test_a_state_of_the_future_is_not_touched():
    assert "describe-stack-events" in states.problem("PAUSED", "mlflow", [])


class _Cloudformation:
    def __init__(self, state: str):
        self._state = state

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self._state, "Parameters": []}]}

    def get_paginator(self, _: str) -> "_Cloudformation":
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        resources = {"Table": "UPDATE_COMPLETE", "TrackingFunction": "UPDATE_FAILED", "Api": "DELETE_FAILED"}
        return [{"StackResourceSummaries": [{"LogicalResourceId": name, "ResourceStatus": status} for name, status in resources.items()]}]


class _Caller:
    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "123456789012"}


def _find_problems(monkeypatch: pytest.MonkeyPatch, clients: dict[str, Any], **parameters: str) -> list[str]:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(boto3, "client", lambda service, **_: clients.get(service, clients.get("*")))
    settings = Settings("default", "mlflow", "eu-central-1", parameters, [], is_built=True, only_checks=True)
    return [*preflight.find_problems(settings), *preflight.find_warnings(settings)]


@pytest.mark.parametrize("state, command", [("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"), ("DELETE_FAILED", "--retain-resources Api TrackingFunction")])
def test_the_checks_name_the_resources_of_the_stack(monkeypatch: pytest.MonkeyPatch, state: str, command: str):
    class Quota:
        def get_account_settings(self) -> dict[str, Any]:
            return {"AccountLimit": {"ConcurrentExecutions": 1000}}

    [said] = _find_problems(monkeypatch, {"cloudformation": _Cloudformation(state), "sts": _Caller(), "lambda": Quota()})
    assert command in said


class _Denying:
    """A client of a service that denies everything."""

    def __getattr__(self, name: str) -> Any:
        def denied(*_: Any, **__: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, name)

        return denied


def test_without_rights_the_checks_say_what_they_could_not_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    class Missing(_Cloudformation):
        def describe_stacks(self, **_: str) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "Stack does not exist"}}, "DescribeStacks")

    key = "arn:aws:kms:eu-central-1:123456789012:key/0a1b"
    names_ = {"DomainName": "ml.example.com", "DomainCertificate": "arn:aws:acm:eu-central-1:123456789012:certificate/0", "DomainZone": "Z0"}
    clients = {"*": _Denying(), "cloudformation": Missing(""), "sts": _Caller()}
    assert _find_problems(monkeypatch, clients, TrackingConcurrency="10", TableKey=key, **names_) == []
    said = capsys.readouterr().out
    for what in ("log groups", "concurrent executions are left", "the account's quota", "TableKey", "certificate", "in the zone", "ml.example.com is in use"):
        assert what in said, said
    assert _find_problems(monkeypatch, {"*": _Denying(), "sts": _Caller()}) == []
    assert "cannot check the state of the stack, and its parameters" in capsys.readouterr().out
