"""Tests what `make deploy` reports about its first call of the function `tracking`."""

import io
import json
import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
from first_call import make_first_call  # noqa: E402


class _Stack:
    def resources(self) -> dict[str, str]:
        return {"TrackingFunction": "mlflow-tracking"}


class _Functions:
    """A Lambda client with one function that returns this result."""

    def __init__(self, answer: Any, **more: str):
        self._answer, self._more = answer, more

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == "mlflow-tracking"
        asked = json.loads(Payload)["requestContext"]["http"]
        assert (asked["method"], asked["path"]) == ("GET", "/health")
        return {"Payload": io.BytesIO(json.dumps(self._answer).encode()), **self._more}


class _Refused:
    def invoke(self, **_: object) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right to call"}}, "Invoke")


def test_nothing_is_said_of_a_function_that_answers() -> None:
    assert make_first_call(_Functions({"statusCode": 200, "body": "OK"}), _Stack()) is None


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (_Functions({"statusCode": 500, "body": "broken"}), "broken"),
        (_Functions({"errorType": "Runtime.ExitError"}, FunctionError="Unhandled"), "Runtime.ExitError"),
        (_Functions(None), "null"),
        (_Refused(), "no right to call"),
    ],
)
def test_what_is_no_answer_is_said(functions: Any, said: str) -> None:
    assert said in (make_first_call(functions, _Stack()) or "")
