"""Tests what `make deploy` reports about its first calls of the functions."""

import io
import json
import sys
import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
from first_call import make_first_calls  # noqa: E402

_FUNCTIONS = {"TrackingFunction": "mlflow-tracking", "IndexerFunction": "mlflow-fts-indexer", "UiFunction": "mlflow-ui"}


class _Stack:
    def resources(self, kind: str) -> dict[str, str]:
        assert kind == "AWS::Lambda::Function"
        return _FUNCTIONS


class _Functions:
    """A Lambda client whose functions all succeed, except for one that returns the given result."""

    def __init__(self, name: str = "", answer: Any = None, **more: str):
        self._name, self._answer, self._more = name, answer, more
        self.events: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        with self._lock:
            self.events[FunctionName] = json.loads(Payload)
        if FunctionName == self._name:
            return {"Payload": io.BytesIO(json.dumps(self._answer).encode()), **self._more}
        # The indexer has a response of its own, and most functions have no route for the path.
        others = {"mlflow-fts-indexer": {"batchItemFailures": []}, "mlflow-tracking": {"statusCode": 200}}
        return {"Payload": io.BytesIO(json.dumps(others.get(FunctionName, {"statusCode": 404})).encode())}


class _Refused:
    def invoke(self, **_: object) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right to call"}}, "Invoke")


def test_every_function_is_called_and_nothing_is_said_of_those_that_answer() -> None:
    functions = _Functions()
    assert list(make_first_calls(_Stack(), functions)) == []
    assert functions.events.keys() == set(_FUNCTIONS.values())
    # The indexer gets an empty list of changes. An event without the list would trigger its
    # periodic work.
    assert functions.events.pop("mlflow-fts-indexer") == {"Records": []}
    for event in functions.events.values():
        asked = event["requestContext"]["http"]
        assert (asked["method"], asked["path"], event["rawPath"]) == ("GET", "/health", "/health")


@pytest.mark.parametrize("name", _FUNCTIONS.values())
@pytest.mark.parametrize(
    ("answer", "more", "said"),
    [
        ({"statusCode": 500, "body": "broken"}, {}, "broken"),
        ({"errorType": "Runtime.ExitError"}, {"FunctionError": "Unhandled"}, "Runtime.ExitError"),
        (None, {}, "null"),
    ],
)
def test_a_function_that_does_not_start_is_named(name: str, answer: Any, more: dict[str, str], said: str) -> None:
    [told] = make_first_calls(_Stack(), _Functions(name, answer, **more))
    assert name in told and said in told


def test_a_missing_right_is_said() -> None:
    said = list(make_first_calls(_Stack(), _Refused()))
    assert len(said) == len(_FUNCTIONS) and all("no right to call" in one for one in said)
