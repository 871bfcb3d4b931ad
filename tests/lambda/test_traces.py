"""Tests of traces through the functions: responses that exceed a function's limit are served from
the bucket.
"""

import random
import uuid
from urllib.parse import urlsplit

import mlflow
import pytest
import requests
from mlflow import MlflowClient

from tests.support.servers import ARTIFACT_ROOT

from .conftest import LocalLambda

_ANSWERS = urlsplit(ARTIFACT_ROOT).path.removeprefix("/") + "/.answers/"


@pytest.fixture
def experiment(local_lambda: LocalLambda) -> str:
    mlflow.set_tracking_uri(local_lambda.gateway)
    return MlflowClient().create_experiment(f"traces-{uuid.uuid4().hex}")


def _export(url: str, experiment: str, trace: int, spans: list[dict]) -> None:
    whole = [
        {"traceId": f"{trace:032x}", "name": "s", "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000"} | span
        for span in spans
    ]
    body = {"resourceSpans": [{"scopeSpans": [{"spans": whole}]}]}
    requests.post(f"{url}/v1/traces", json=body, headers={"x-mlflow-experiment-id": experiment}, timeout=60).raise_for_status()


@pytest.mark.slow
def test_a_trace_of_ten_thousand_spans_comes_back_whole(local_lambda: LocalLambda, experiment: str):
    trace = random.getrandbits(128)
    spans = [
        {"spanId": f"{number:016x}", "name": f"step {number}"} | ({"parentSpanId": f"{1:016x}"} if number > 1 else {})
        for number in range(1, 10_001)
    ]
    for start in range(0, len(spans), 2_000):
        _export(local_lambda.gateway, experiment, trace, spans[start : start + 2_000])
    found = MlflowClient().get_trace(f"tr-{trace:032x}").data.spans
    assert {span.name for span in found} == {f"step {number}" for number in range(1, 10_001)}


@pytest.mark.slow
def test_a_trace_of_20_mb_comes_back_from_the_bucket(local_lambda: LocalLambda, experiment: str):
    trace, source = random.getrandbits(128), random.Random(7)
    payloads = {f"{number:016x}": source.randbytes(1_250_000).hex() for number in range(1, 9)}
    for span, payload in payloads.items():
        parent = {} if span.endswith("1") else {"parentSpanId": f"{1:016x}"}
        attributes = [{"key": "payload", "value": {"stringValue": payload}}]
        _export(local_lambda.gateway, experiment, trace, [{"spanId": span, "attributes": attributes} | parent])
    # Reads it as a single trace, in a batch, and like the user interface.
    url, id_ = local_lambda.gateway, f"tr-{trace:032x}"
    [one] = mlflow.search_traces(locations=[experiment], return_type="list")
    for found in (MlflowClient().get_trace(id_), one):
        assert {span.span_id: span.get_attribute("payload") for span in found.data.spans} == payloads
    answer = requests.get(f"{url}/ajax-api/3.0/mlflow/get-trace-artifact", {"request_id": id_}, timeout=60)
    assert [redirect.status_code for redirect in answer.history] == [307]
    assert len(answer.json()["spans"]) == 8
    answers = [key for key in local_lambda.bucket.keys() if key.startswith(_ANSWERS)]
    assert len(answers) == 3
    # Offloaded responses are not listed among artifacts, and cannot be downloaded as such.
    listed = requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts", timeout=60).json().get("files", [])
    assert ".answers" not in [file["path"] for file in listed]
    name = answers[0].rpartition("/")[2]
    assert requests.get(f"{url}/api/2.0/mlflow-artifacts/artifacts/.answers/{name}", timeout=60).status_code == 404
