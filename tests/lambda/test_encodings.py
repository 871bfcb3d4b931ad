"""JSON in encodings other than UTF-8, through API Gateway, which treats it as UTF-8, and through
`serve`.
"""

import json
import random
import uuid

import pytest
import requests

from .conftest import LocalLambda

_JSON = {"Content-Type": "application/json"}
#: With and without a byte order mark.
_ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.fixture(params=["functions", "serve"])
def server(request: pytest.FixtureRequest, local_lambda: LocalLambda) -> str:
    return local_lambda.gateway if request.param == "functions" else request.getfixturevalue("subject").url


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_json_is_read_in_each_encoding(server: str, encoding: str):
    name = f"{encoding}-{uuid.uuid4().hex}"
    body = json.dumps({"name": name}).encode(encoding)
    created = requests.post(f"{server}/api/2.0/mlflow/experiments/create", body, headers=_JSON, timeout=60)
    assert created.status_code == 200, created.text
    query = {"experiment_name": name}
    found = requests.get(f"{server}/api/2.0/mlflow/experiments/get-by-name", query, timeout=60).json()
    assert found["experiment"]["experiment_id"] == created.json()["experiment_id"]


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_spans_are_read_in_each_encoding(server: str, encoding: str):
    trace = random.getrandbits(128)
    span = {
        "traceId": f"{trace:032x}",
        "spanId": f"{1:016x}",
        "name": encoding,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode(encoding)
    headers = _JSON | {"x-mlflow-experiment-id": "0"}
    answer = requests.post(f"{server}/v1/traces", body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    query = {"trace_id": f"tr-{trace:032x}"}
    found = requests.get(f"{server}/api/3.0/mlflow/traces/get", query, timeout=60).json()
    assert [span["name"] for span in found["trace"]["spans"]] == [encoding]


@pytest.mark.parametrize("body", [b"{", b"name=x", b"{'name': 'x'}", b'{"name": "x"} x', b"\x00", b'{"name": "\x01"}'])
def test_a_body_that_is_not_json_is_said_to_be_none(server: str, body: bytes):
    for method, path in [("POST", "experiments/create"), ("PATCH", "registered-models/update"), ("GET", "experiments/search")]:
        answer = requests.request(method, f"{server}/api/2.0/mlflow/{path}", data=body, headers=_JSON, timeout=60)
        assert (answer.status_code, answer.json()["message"]) == (400, "The request body is not JSON."), path


def test_characters_that_the_gateway_replaced_are_not_stored(local_lambda: LocalLambda):
    for encoding in filter(lambda encoding: encoding != "utf-8-sig", _ENCODINGS):
        body = json.dumps({"name": "größer"}, ensure_ascii=False).encode(encoding)
        url = f"{local_lambda.gateway}/api/2.0/mlflow/experiments/create"
        answer = requests.post(url, body, headers=_JSON, timeout=60)
        assert answer.status_code == 400, answer.text
        assert answer.json()["message"].endswith("Send JSON in UTF-8."), encoding
