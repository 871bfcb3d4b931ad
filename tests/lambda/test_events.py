"""Sends the sample events in `events/` to the functions' binaries like API Gateway does."""

import pytest
import requests

from tests.support.http import Request, Side

#: The run ids in the sample events.
FIRST, SECOND = "0" * 31 + "1", "0" * 31 + "2"


def call(gateway: str, path: str, value: dict) -> dict:
    answer = Side("gateway", gateway).send(Request.of_json("POST", f"/api/2.0/mlflow/{path}", value))
    assert answer.status == 200, answer
    return answer.body


def new_run(gateway: str) -> str:
    return call(gateway, "runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]


def test_create_experiment(invoke):
    status, body = invoke("tracking", "create-experiment")
    assert status == 200
    assert int(body["experiment_id"]) > 0


def test_search_experiments(gateway, invoke):
    call(gateway, "experiments/create", {"name": "searched by an event"})
    status, body = invoke("tracking", "search-experiments")
    assert status == 200
    assert [experiment["name"] for experiment in body["experiments"]] == ["searched by an event"]


def test_log_batch(gateway, invoke):
    run = new_run(gateway)
    assert invoke("tracking", "log-batch", {FIRST: run}) == (200, {})
    data = requests.get(f"{gateway}/api/2.0/mlflow/runs/get", {"run_id": run}, timeout=60).json()["run"]["data"]
    assert {(metric["key"], metric["value"], metric["step"]) for metric in data["metrics"]} == {("loss", 0.25, 2)}
    assert data["params"] == [{"key": "optimizer", "value": "adam"}]
    assert {"key": "stage", "value": "warm-up"} in data["tags"]


def test_log_batch_of_an_unknown_run(invoke):
    status, body = invoke("tracking", "log-batch")
    assert (status, body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_base64_body(gateway, invoke):
    status, created = invoke("tracking", "base64-body")
    assert status == 200
    query = {"experiment_id": created["experiment_id"]}
    found = requests.get(f"{gateway}/api/2.0/mlflow/experiments/get", query, timeout=60).json()
    assert found["experiment"]["name"] == "größer als ASCII 🎉"


def test_repeated_query_parameters(gateway, invoke):
    runs = [new_run(gateway), new_run(gateway)]
    for value, run in enumerate(runs):
        call(gateway, "runs/log-metric", {"run_id": run, "key": "loss", "value": value, "timestamp": 1, "step": 0})
    status, body = invoke("tracking", "repeated-query", dict(zip([FIRST, SECOND], runs)))
    assert status == 200
    assert {(metric["run_id"], metric["value"]) for metric in body["metrics"]} == {(runs[0], 0.0), (runs[1], 1.0)}


def test_create_evaluation_dataset(gateway, invoke):
    # The tracking function creates the default experiment when it starts.
    call(gateway, "experiments/search", {"max_results": 1})
    status, body = invoke("evaluation", "create-dataset")
    assert status == 200
    dataset = body["dataset"]
    assert (dataset["experiment_ids"], dataset["tags"]) == (["0"], '{"team": "search"}')
    # The dataset is read through the gateway, and combined with data of another function.
    base = f"{gateway}/ajax-api/3.0/mlflow"
    found = requests.get(f"{base}/datasets/{dataset['dataset_id']}", timeout=60).json()
    assert found["dataset"]["name"] == "questions"
    added = requests.post(
        f"{base}/datasets/{dataset['dataset_id']}/add-experiments", json={"experiment_ids": ["0"]}, timeout=60
    )
    assert added.status_code == 200, added.text
    assert requests.get(f"{base}/scorers/list", {"experiment_id": "0"}, timeout=60).json() == {}


def test_start_trace(gateway, invoke):
    status, body = invoke("traces", "start-trace")
    assert status == 200
    trace = body["trace"]["trace_info"]
    assert (trace["state"], trace["tags"]["mlflow.traceName"]) == ("OK", "agent")
    # The trace is read through the gateway, which also accepts spans.
    found = requests.get(f"{gateway}/ajax-api/3.0/mlflow/traces/{trace['trace_id']}", timeout=60).json()
    assert found["trace"]["trace_info"] == trace
    headers = {"x-mlflow-experiment-id": "0"}
    refused = requests.post(f"{gateway}/v1/traces", json={}, headers=headers, timeout=60)
    assert (refused.status_code, refused.json()) == (400, {"detail": "Invalid OpenTelemetry format - no spans found"})


def test_an_unknown_path_of_the_evaluation_function(gateway):
    for path in ["datasets/a/none", "scorers/none", "scorers"]:
        answer = requests.get(f"{gateway}/api/3.0/mlflow/{path}", timeout=60)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")


def test_create_registered_model(gateway, invoke):
    status, body = invoke("registry", "create-registered-model")
    assert status == 200
    assert body["registered_model"]["tags"] == [{"key": "team", "value": "research"}]
    # The model is read through the gateway.
    url = f"{gateway}/ajax-api/2.0/mlflow/registered-models/get"
    found = requests.get(url, {"name": "iris"}, timeout=60).json()
    assert found["registered_model"]["description"] == "Classifies flowers"
    # The source of a version belongs to a run, which the tracking function has created.
    run = call(gateway, "runs/create", {"experiment_id": "0"})["run"]["info"]
    source = {"name": "iris", "source": f"{run['artifact_uri']}/model", "run_id": run["run_id"]}
    assert call(gateway, "model-versions/create", source)["model_version"]["version"] == "1"


def test_an_unknown_path_of_the_registry(gateway):
    for path in ["registered-models/none", "model-versions/none", "registered-models"]:
        answer = requests.get(f"{gateway}/api/2.0/mlflow/{path}", timeout=60)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")


def test_a_query_reads_what_other_functions_have_written(gateway):
    run = call(gateway, "runs/create", {"experiment_id": "0", "run_name": "queried"})["run"]["info"]
    query = "query Q($i: MlflowGetRunInput!) { mlflowGetRun(input: $i) { run { info { runName } experiment { name } modelVersions { name } } } }"
    body = {"query": query, "variables": {"i": {"runId": run["run_id"]}}}
    answer = requests.post(f"{gateway}/graphql", json=body, timeout=60).json()
    found = {"info": {"runName": "queried"}, "experiment": {"name": "Default"}, "modelVersions": []}
    assert answer == {"data": {"mlflowGetRun": {"run": found}}, "errors": None}


def test_query_is_decoded_once(invoke):
    status, body = invoke("tracking", "encoded-query")
    assert (status, body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert "'100% of a/b & c+d é %2F'" in body["message"]


def test_a_query_need_not_be_escaped(gateway, invoke):
    call(gateway, "registered-models/create", {"name": '<"größer"> than ASCII'})
    status, body = invoke("registry", "unescaped-query")
    assert status == 200
    assert [model["name"] for model in body["registered_models"]] == ['<"größer"> than ASCII']


def test_an_event_that_is_no_request_is_refused(invoke):
    status, body = invoke("registry", "unreadable-header")
    assert (status, body["error_code"]) == (400, "BAD_REQUEST")
    assert body["message"].startswith("The request is invalid")


# An HTTP API decodes the path, while a function URL does not.
@pytest.mark.parametrize("event", ["unknown-path", "encoded-path", "decoded-path"])
def test_unknown_path(invoke, event):
    status, body = invoke("tracking", event)
    assert status == 404
    # Stock clients interpret a 404 whose body is not JSON as ENDPOINT_NOT_FOUND.
    assert isinstance(body, str)
