"""Requests to each route that both servers have, with different spellings of the entities to which
they refer.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.users.world import V2, V3

AJAX2, AJAX3 = (path.replace("/api/", "/ajax-api/") for path in (V2, V3))
_SCORER = '{"instructions_judge_pydantic_data": {}}'
_MISSING = "0" * 32


class Made(NamedTuple):
    """An entity that the administrator creates first, so that the request can delete it.

    Its id is `$fresh`.
    """

    path: str
    content: dict[str, Any]
    pointer: tuple[str, ...] = ()


class Asked(NamedTuple):
    """A request. `sent` specifies how the content is sent. The default is the query for GET, and
    the body for all other methods.

    `accepted` has the accepted differences: pairs of the statuses of MLflow and of our server, each
    with the reason.
    """

    method: str
    path: str
    content: dict[str, Any] = {}
    sent: str = ""
    made: Made | None = None
    accepted: Mapping[tuple[int, int], str] = {}


#: MLflow's authorization supports fewer spellings than its endpoints, and refuses the others to
#: everyone except administrators.
_UNSEEN = {(400, 403): "MLflow rejects this spelling for users; our server supports it, and checks permissions"}
_STEP = dict.fromkeys([(403, 404), (404, 403), (200, 403)], "MLflow finds no experiment behind a dot segment; our server resolves the path first")
#: A dataset of several experiments.
_ONE_IS_ENOUGH = {(403, 200): "MLflow requires permission to read all experiments of a dataset; our server requires it for one of them"}
#: Files outside of experiments, to which only administrators have access.
_NOBODYS = dict.fromkeys([(200, 403), (404, 403)], "MLflow applies the default permission there")
_SPACE = dict.fromkeys([(200, 403), (403, 200)], "MLflow finds no grant for this text, and applies the default permission")
_NO_ID = {(403, 404): "no entity can have such an id, so our server responds with 404 to everyone"}
_NAMED = {(200, 403): "MLflow does not check experiments that do not contain the dataset"}
_PROMPT = dict.fromkeys([(403, 501), (500, 403)], "MLflow checks grants for registered models here, although the entity is a prompt; our server does not")
_NO_QUEUES = {(200, 403): "MLflow lists no queues to callers who are denied them; our server refuses the list"}
_NO_SCORER = {(200, 403): "MLflow distinguishes missing scorers from unreadable ones; our server does not"}


def location(experiment: str) -> dict[str, Any]:
    return {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}


def of_experiment(number: int) -> list[Asked]:
    experiment, run, model = f"$experiment{number}", f"$run{number}", f"$logged{number}"
    description = {"artifact_path": "m", "flavors": {}, "utc_time_created": "2026-01-01 00:00:00.000000", "run_id": run}
    return [
        Asked("POST", f"{V2}/experiments/update", {"experiment_id": experiment, "new_name": f"experiment{number}"}),
        Asked("POST", f"{V2}/experiments/delete-experiment-tag", {"experiment_id": experiment, "key": "nothing"}),
        Asked("POST", f"{V2}/experiments/restore", {"experiment_id": experiment}),
        Asked("POST", f"{AJAX2}/experiments/search-datasets", {"experiment_ids": [experiment]}),
        Asked("POST", f"{AJAX2}/experiments/search-datasets", {"experiment_ids": [experiment, "$experiment2"]}),
        Asked("POST", f"{V2}/runs/update", {"run_id": run, "status": "FINISHED"}),
        Asked("POST", f"{V2}/runs/restore", {"run_id": run}),
        Asked("POST", f"{V2}/runs/log-parameter", {"run_id": run, "key": "p", "value": "v"}),
        Asked("POST", f"{V2}/runs/log-batch", {"run_id": run, "tags": [{"key": "b", "value": "v"}]}),
        Asked("POST", f"{V2}/runs/log-batch", {"run_id": run, "metrics": [_metric("$logged1")]}),
        Asked("POST", f"{V2}/runs/log-model", {"run_id": run, "model_json": json.dumps(description)}),
        Asked("POST", f"{V2}/runs/log-inputs", {"run_id": run, "models": [{"model_id": "$logged1"}]}),
        Asked("POST", f"{V2}/runs/outputs", {"run_id": run, "models": [{"model_id": "$logged1", "step": 1}]}),
        Asked("POST", f"{V2}/runs/delete-tag", {"run_id": run, "key": "nothing"}),
        Asked("GET", f"{AJAX2}/metrics/get-history-bulk", {"run_id": [run, "$run1"], "metric_key": "m"}),
        Asked("GET", f"{V2}/metrics/get-history-bulk-interval", {"run_ids": [run, "$run1"], "metric_key": "m", "max_results": 10}),
        Asked("PATCH", f"{V2}/logged-models/{model}", {"model_id": model, "status": "LOGGED_MODEL_READY"}),
        Asked("DELETE", f"{V2}/logged-models/$fresh", made=_logged_model(experiment)),
        Asked("POST", f"{V2}/logged-models/{model}/params", {"model_id": model, "params": [{"key": "k", "value": "v"}]}),
        Asked("DELETE", f"{V2}/logged-models/{model}/tags/nothing"),
        Asked("GET", f"{V2}/logged-models/{model}/artifacts/directories"),
        Asked("GET", f"{AJAX2}/logged-models/{model}/artifacts/files", {"artifact_file_path": "x"}),
        Asked("GET", f"{V2}/artifacts/list", {"run_uuid": run}),
        Asked("GET", "/get-artifact", {"run_uuid": run, "path": "x"}),
        Asked("GET", "/get-artifact", {"run_id": run, "path": "x"}),
        Asked("POST", f"{AJAX2}/upload-artifact?run_uuid={run}&path=x", sent="bytes"),
        Asked("POST", f"{V2}/artifacts/presigned-upload-url", {"run_id": run, "path": "x"}),
        Asked("POST", f"{V2}/artifacts/presigned-download-url", {"run_id": run, "path": "x"}),
        *_datasets(experiment, f"$dataset{number}"),
        *_scorers(experiment),
        *_served(experiment, run),
        *_traces(number),
        *_reviews(number),
    ]


def _reviews(number: int) -> list[Asked]:
    experiment, trace, issue = f"$experiment{number}", f"$trace{number}", f"$issue{number}"
    schemas, queues, issues = (f"{V3}/{path}" for path in ("label-schemas", "review-queues", "issues"))
    new_schema = {"experiment_id": experiment, "name": "$unique", "type": "FEEDBACK", "input": {"text": {}}}
    fresh_schema = Made(f"{schemas}/create", new_schema, ("label_schema", "schema_id"))
    new_queue = {"experiment_id": experiment, "name": "$unique", "queue_type": "CUSTOM"}

    def fresh_queue(**more: Any) -> Made:
        return Made(f"{queues}/create", {**new_queue, **more}, ("review_queue", "queue_id"))

    def of_queue(queue: str, made: Made | None = None) -> list[Asked]:
        of_item = {"queue_id": queue, "item_ids": [trace]}
        return [
            Asked("GET", f"{queues}/get", {"queue_id": queue}, made=made),
            Asked("POST", f"{queues}/update", {"queue_id": queue, "update_users": True, "users": ["$caller"]}, made=made),
            Asked("POST", f"{queues}/update", {"queue_id": queue, "newOwner": "$caller"}, made=made),
            Asked("POST", f"{queues}/items/add", of_item, made=made),
            Asked("POST", f"{queues}/items/remove", of_item, made=made),
            Asked("GET", f"{queues}/items/list", {"queue_id": queue}, made=made),
            Asked("POST", f"{queues}/items/set-status", {"queue_id": queue, "item_id": trace, "status": "COMPLETE"}, made=made),
        ]

    return [
        Asked("POST", f"{schemas}/create", new_schema),
        Asked("GET", f"{schemas}/get", {"schema_id": f"$schema{number}"}),
        Asked("GET", f"{schemas}/get-by-name", {"experiment_id": experiment, "name": "schema"}),
        Asked("GET", f"{schemas}/list", {"experiment_id": experiment}),
        Asked("PATCH", f"{schemas}/update", {"schema_id": f"$schema{number}", "instruction": "i"}),
        Asked("DELETE", f"{schemas}/delete", {"schema_id": "$fresh"}, made=fresh_schema),
        Asked("POST", f"{queues}/create", new_queue),
        Asked("POST", f"{queues}/get-or-create-user", {"experiment_id": experiment, "user": "$caller"}),
        Asked("GET", f"{queues}/get-by-name", {"experiment_id": experiment, "name": "queue"}),
        Asked("GET", f"{queues}/get-by-name", {"experiment_id": experiment, "name": "$unique"}, made=fresh_queue(users=["$caller"])),
        Asked("GET", f"{queues}/list", {"experiment_id": experiment}, accepted=_NO_QUEUES),
        Asked("POST", f"{queues}/delete", {"queue_id": "$fresh"}, made=fresh_queue(users=["$caller"])),
        *of_queue("$fresh", fresh_queue(users=["$caller"])),
        *of_queue(f"$queue{number}"),
        Asked("POST", issues, {"experiment_id": experiment, "name": "n", "description": "d"}),
        Asked("POST", f"{issues}/search", {"experiment_id": experiment}),
        Asked("POST", f"{issues}/search", {"experiment_id": experiment, "filter_string": f"source_run_id = '$run{number}'"}),
        Asked("GET", f"{issues}/{issue}"),
        Asked("PATCH", f"{issues}/{issue}", {"issue_id": issue, "description": "e"}),
    ]


def _metric(model: str) -> dict[str, Any]:
    return {"key": "m", "value": 1, "timestamp": 1, "model_id": model}


def _logged_model(experiment: str) -> Made:
    return Made(f"{V2}/logged-models", {"experiment_id": experiment, "name": "fresh"}, ("model", "info", "model_id"))


def _datasets(experiment: str, dataset: str) -> list[Asked]:
    new = {"name": "$unique", "experiment_ids": [experiment]}
    records = json.dumps([{"inputs": {"q": "x"}}])
    return [
        Asked("POST", f"{V3}/datasets/create", new),
        Asked("POST", f"{V3}/datasets/search", {"experiment_ids": [experiment]}),
        Asked("GET", f"{V3}/datasets/search", {"experiment_ids": [experiment, "$experiment1"]}),
        Asked("GET", f"{V3}/datasets/{dataset}"),
        Asked("DELETE", f"{V3}/datasets/$fresh", made=Made(f"{V3}/datasets/create", new, ("dataset", "dataset_id"))),
        Asked("PATCH", f"{V3}/datasets/{dataset}/tags", {"tags": json.dumps({"k": "v"})}),
        Asked("DELETE", f"{V3}/datasets/{dataset}/tags/k"),
        Asked("POST", f"{V3}/datasets/{dataset}/records", {"records": records}),
        Asked("GET", f"{V3}/datasets/{dataset}/records"),
        Asked("DELETE", f"{V3}/datasets/{dataset}/records", {"dataset_record_ids": ["nothing"]}),
        Asked("GET", f"{V3}/datasets/{dataset}/experiment-ids"),
        Asked("POST", f"{V3}/datasets/{dataset}/add-experiments", {"experiment_ids": [experiment]}),
        Asked("POST", f"{V3}/datasets/{dataset}/remove-experiments", {"experiment_ids": [experiment, "$experiment1"]}, accepted=_NAMED),
    ]


def _scorers(experiment: str) -> list[Asked]:
    def registered(name: str) -> dict[str, Any]:
        return {"experiment_id": experiment, "name": name, "serialized_scorer": _SCORER}

    return [
        Asked("POST", f"{V3}/scorers/register", registered("$unique")),
        Asked("DELETE", f"{V3}/scorers/delete", {"experiment_id": experiment, "name": "doomed"}, made=Made(f"{V3}/scorers/register", registered("doomed"))),
        Asked("PUT", f"{V3}/scorers/online-config", {"experiment_id": experiment, "name": "scorer1", "sample_rate": 0.5}),
        Asked("GET", f"{V3}/scorers/get", {"experiment_id": experiment, "name": "scorer1"}),
    ]


def _served(experiment: str, run: str) -> list[Asked]:
    served = f"{V2}-artifacts"
    of_parts = {"path": "x", "num_parts": 1, "upload_id": "u", "parts": [{"part_number": 1, "etag": "e"}]}
    places = [f"{experiment}/{run}/artifacts", f"{experiment}/traces/tr-0/artifacts", f"{experiment}/models/m-0/artifacts", experiment]
    return [
        *(Asked("GET", f"{served}/artifacts", {"path": place}) for place in places),
        *(Asked("GET", f"{served}/artifacts/{place}/x") for place in places),
        *(Asked("PUT", f"{served}/artifacts/{place}/x", sent="bytes") for place in places),
        *(Asked("DELETE", f"{served}/artifacts/{place}/x") for place in places),
        *(Asked("POST", f"{served}/mpu/{step}/{places[0]}", of_parts) for step in ("create", "complete", "abort")),
        Asked("GET", f"{served}/presigned/{places[0]}/x"),
    ]


def _traces(number: int) -> list[Asked]:
    experiment, run, trace = f"$experiment{number}", f"$run{number}", f"$trace{number}"
    assessment = f"{V3}/traces/{trace}/assessments/$assessment{number}"
    feedback = {"assessment_name": "fresh", "feedback": {"value": 1}, "source": {"source_type": "HUMAN", "source_id": "x"}}
    fresh = Made(f"{V3}/traces/{trace}/assessments", {"assessment": feedback}, ("assessment", "assessment_id"))
    count = {"metric_name": "trace_count", "view_type": "TRACES", "aggregations": [{"aggregation_type": "COUNT"}]}
    filters = {"filter_string1": "status = 'OK'", "filter_string2": "status = 'ERROR'"}
    by_feedback = {"filter_string1": "feedback.f = 'true'", "filter_string2": "status = 'ERROR'"}
    return [
        Asked("POST", f"{V3}/traces/metrics", {"experiment_ids": [experiment], **count}),
        Asked("POST", f"{V3}/traces/calculate-filter-correlation", {"experiment_ids": [experiment], **filters}),
        Asked("POST", f"{V3}/traces/calculate-filter-correlation", {"experiment_ids": [experiment], **by_feedback}),
        Asked("GET", f"{V3}/traces/get", {"trace_id": trace}),
        Asked("GET", f"{V3}/traces/batchGet", {"trace_ids": [trace, "$trace1"]}),
        Asked("POST", f"{V3}/traces/batchGetInfos", {"trace_ids": [trace, "$trace1"]}),
        Asked("DELETE", f"{V3}/traces/{trace}/tags", {"key": "nothing"}),
        Asked("GET", assessment),
        Asked("PATCH", assessment, {"assessment": {"assessment_name": "f", "feedback": {"value": True}}, "update_mask": "feedback"}),
        Asked("DELETE", f"{V3}/traces/{trace}/assessments/$fresh", made=fresh),
        Asked("GET", f"{V2}/traces", {"experiment_ids": [experiment]}),
        Asked("GET", f"{V2}/traces/{trace}/info"),
        Asked("PATCH", f"{V2}/traces/{trace}/tags", {"key": "k", "value": "v"}),
        Asked("DELETE", f"{V2}/traces/{trace}/tags", {"key": "nothing"}),
        Asked("POST", f"{V2}/traces/delete-traces", {"experiment_id": experiment, "request_ids": ["tr-0"]}),
        Asked("POST", f"{V2}/traces/link-to-run", {"run_id": run, "trace_ids": ["$trace1"]}),
        Asked("POST", f"{V2}/traces/link-prompts", {"trace_id": trace, "prompt_versions": [{"name": "prompt1", "version": "1"}]}),
        *(Asked("GET", f"{ajax}/get-trace-artifact", {"request_id": trace}) for ajax in (AJAX2, AJAX3)),
    ]


def of_model(name: str) -> list[Asked]:
    version = {"name": name, "version": "1"}
    return [
        Asked("POST", f"{V2}/registered-models/rename", {"name": name, "new_name": name}),
        Asked("DELETE", f"{V2}/registered-models/delete-tag", {"name": name, "key": "nothing"}),
        Asked("GET", f"{V2}/registered-models/get-latest-versions", {"name": name}),
        Asked("POST", f"{V2}/registered-models/get-latest-versions", {"name": name}),
        Asked("DELETE", f"{V2}/registered-models/alias", {"name": name, "alias": "nothing"}),
        Asked("POST", f"{V2}/model-versions/create", {"name": name, "source": "s3://bucket/x"}),
        Asked("POST", f"{V2}/model-versions/create", {"name": name, "source": "s3://bucket/x", "run_id": "$run2"}),
        Asked("POST", f"{V2}/model-versions/create", {"name": name, "source": "s3://bucket/x", "model_id": "$logged2"}),
        Asked("GET", f"{V2}/model-versions/get-download-uri", version),
        Asked("GET", "/model-versions/get-artifact", {**version, "path": "x"}, accepted=_PROMPT if name == "prompt1" else {}),
        Asked("PATCH", f"{V2}/model-versions/update", {**version, "description": "d"}),
        Asked("POST", f"{V2}/model-versions/transition-stage", {**version, "stage": "Staging", "archive_existing_versions": False}),
        Asked("DELETE", f"{V2}/model-versions/delete", {"name": name, "version": "999"}),
        Asked("DELETE", f"{V2}/model-versions/delete-tag", {**version, "key": "nothing"}),
    ]


#: Entities in spellings that clients of MLflow do not use.
SPELLED = [
    Asked("GET", f"{V2}/runs/get", {"run_uuid": "$run1"}),
    Asked("GET", f"{V2}/runs/get", {"run_id": "$run1", "run_uuid": "$run2"}),
    Asked("GET", f"{V2}/runs/get", {"runId": "$run1"}),
    Asked("GET", f"{AJAX2}/runs/get", {"run_id": "$run1"}),
    Asked("GET", f"{V2}/runs/get?run_id=$run1", {"run_id": "$run2"}, sent="body"),
    Asked("GET", f"{V2}/runs/get", {"run_id": "$run1"}, sent="body", accepted=_UNSEEN),
    Asked("GET", f"{V2}/experiments/get", {"experimentId": "$experiment1"}),
    Asked("GET", f"{V2}/experiments/get", {"experiment_id": " $experiment1"}, accepted=_SPACE),
    Asked("POST", f"{V2}/runs/create", {"experimentId": "$experiment1"}, accepted=_UNSEEN),
    Asked("POST", f"{V2}/runs/set-tag", {"runId": "$run1", "key": "k", "value": "v"}),
    Asked("POST", f"{V2}/runs/set-tag", {"run_id": "$run1", "run_uuid": "$run2", "key": "k", "value": "v"}),
    Asked("POST", f"{V2}/runs/set-tag?run_id=$run2", {"run_id": "$run1", "key": "k", "value": "v"}),
    Asked("POST", f"{V2}/runs/set-tag", {"run_id": "$run1", "key": "k", "value": "v"}, sent="query"),
    Asked("POST", f"{V2}/runs/delete", {"runId": "$run3"}),
    Asked("POST", f"{V2}/runs/log-batch", {"runId": "$run1", "tags": []}),
    Asked("POST", f"{V2}/runs/log-inputs", {"run_id": "$run1", "models": [{"modelId": "$logged2"}]}),
    Asked("POST", f"{V2}/runs/outputs", {"runId": "$run1", "models": [{"modelId": "$logged2", "step": 1}]}),
    Asked("POST", f"{V2}/logged-models", {"experimentId": "$experiment1", "name": "new", "sourceRunId": "$run2"}),
    Asked("POST", f"{V2}/model-versions/create", {"name": "model1", "source": "s3://bucket/x", "runId": "$run2", "modelId": "$logged2"}),
    Asked("GET", f"{V2}/logged-models/%6D$logged1_rest"),
    Asked("GET", f"{V2}/logged-models/%256D$logged1_rest", accepted=_NO_ID),
    Asked("GET", f"{V3}/traces/%74r$trace1_rest"),
    Asked("GET", f"{V3}/traces/%2574r$trace1_rest", accepted=_NO_ID),
    Asked("GET", f"{V2}-artifacts/artifacts/%2E/$experiment1/$run1/artifacts/x", accepted=_STEP),
    Asked("GET", f"{V2}-artifacts/artifacts/%252E/$experiment1/$run1/artifacts/x", accepted=_STEP),
    Asked("GET", f"{V2}-artifacts/artifacts//$experiment1/$run1/artifacts/x"),
    Asked("GET", f"{V2}/registered-models/get?name=model1&name=model2"),
    Asked("GET", f"{V2}/registered-models/get?name=%256Dodel1"),
    Asked("DELETE", f"{V2}/registered-models/alias", {"name": "model1", "alias": "nothing"}, sent="query"),
    Asked("DELETE", f"{V2}/registered-models/alias?name=model2", {"name": "model1", "alias": "nothing"}),
    Asked("POST", f"{V3}/traces/search", {"locations": [{"type": "MLFLOW_EXPERIMENT", "mlflowExperiment": {"experimentId": "$experiment1"}}]}),
    Asked("POST", f"{V2}/traces/link-to-run", {"runId": "$run1", "traceIds": ["$trace2"]}),
    Asked("GET", f"{V3}/scorers/get", {"experimentId": "$experiment1", "name": "scorer1"}),
]

#: A dataset of two experiments.
SHARED = [
    Asked("GET", f"{V3}/datasets/$shared", accepted=_ONE_IS_ENOUGH),
    Asked("GET", f"{V3}/datasets/$shared/records", accepted=_ONE_IS_ENOUGH),
    Asked("GET", f"{V3}/datasets/$shared/experiment-ids", accepted=_ONE_IS_ENOUGH),
    Asked("PATCH", f"{V3}/datasets/$shared/tags", {"tags": json.dumps({"k": "v"})}),
    Asked("POST", f"{V3}/datasets/$shared/records", {"records": json.dumps([{"inputs": {"q": "x"}}])}),
    Asked("DELETE", f"{V3}/datasets/$fresh", made=Made(
        f"{V3}/datasets/create", {"name": "$unique", "experiment_ids": ["$experiment1", "$experiment2"]}, ("dataset", "dataset_id"),
    )),
]

#: Entities that do not exist, and requests that do not refer to an experiment or a model.
MISSING = [
    Asked("GET", f"{V2}/experiments/get", {"experiment_id": "999999"}),
    Asked("POST", f"{V2}/experiments/set-experiment-tag", {"experiment_id": "999999", "key": "k", "value": "v"}),
    Asked("POST", f"{V2}/runs/create", {"experiment_id": "999999"}),
    Asked("POST", f"{V2}/runs/set-tag", {"run_id": _MISSING, "key": "k", "value": "v"}),
    Asked("POST", f"{V2}/runs/delete", {"run_id": _MISSING}),
    Asked("GET", f"{AJAX2}/metrics/get-history-bulk", {"run_id": _MISSING, "metric_key": "m"}),
    Asked("GET", f"{V2}/logged-models/m-{_MISSING}"),
    Asked("DELETE", f"{V2}/logged-models/m-{_MISSING}"),
    Asked("POST", f"{V2}/runs/outputs", {"run_id": "$run1", "models": [{"model_id": f"m-{_MISSING}", "step": 1}]}),
    Asked("GET", f"{V3}/datasets/d-{_MISSING}"),
    Asked("GET", f"{V3}/scorers/get", {"experiment_id": "$experiment1", "name": "nothing"}),
    Asked("GET", f"{V2}/model-versions/get", {"name": "model1", "version": "999"}),
    Asked("PATCH", f"{V3}/traces/tr-{'f' * 32}/tags", {"key": "k", "value": "v"}),
    Asked("POST", f"{V3}/traces/tr-{'f' * 32}/assessments", {"assessment": {"assessment_name": "a", "feedback": {"value": 1}}}),
    Asked("POST", f"{V3}/traces/batchGetInfos", {"trace_ids": [f"tr-{'f' * 32}", "$trace1"]}),
    Asked("POST", f"{V3}/datasets/search", {}),
    Asked("POST", f"{V3}/datasets/create", {"name": "$unique"}),
    Asked("GET", f"{V3}/scorers/online-configs", {"scorer_ids": "nothing"}, accepted=_NO_SCORER),
    Asked("GET", f"{V2}-artifacts/artifacts", {"path": ""}, accepted=_NOBODYS),
    Asked("GET", f"{V2}-artifacts/artifacts/elsewhere/x", accepted=_NOBODYS),
    Asked("POST", f"{V2}/registered-models/create", {"name": "$unique"}),
    Asked("POST", f"{V2}/experiments/create", {"name": "$unique"}),
    Asked("POST", f"{V2}/traces", {"experiment_id": "$experiment3", "timestamp_ms": 1}),
    Asked("PATCH", f"{V2}/traces/$trace3", {"request_id": "$trace3", "timestamp_ms": 2, "status": "OK"}),
    Asked("POST", "/v1/traces", {"experiment": "$experiment3"}, sent="spans"),
    Asked("POST", "/v1/traces", {"experiment": "999999"}, sent="spans"),
    Asked("POST", f"{V3}/traces", {"trace": {"trace_info": {
        "trace_id": "tr-$number", "trace_location": location("$experiment3"), "request_time": "2026-01-01T00:00:00Z", "state": "OK",
    }}}),
    Asked("DELETE", f"{V2}/registered-models/delete", {"name": "$unique"}, made=Made(f"{V2}/registered-models/create", {"name": "$unique"})),
    Asked("GET", f"{AJAX3}/ui-telemetry"),
    Asked("GET", f"{V3}/server-info"),
]

#: Routes that other tests cover, or that require no decision.
ELSEWHERE = {
    "/health": "open",
    "/version": "open",
    "/": "open to all signed-in users",
    "/static-files/{path}": "open",
    "/signin": "MLflow has no such page",
    "/tokens": "MLflow has no such page",
    "/login": "MLflow has no such page",
    "/oauth/device": "MLflow has no such endpoint",
    "/oauth/token": "MLflow has no such endpoint",
    "/signup": "test_same_rows.py",
    "/graphql": "covered by `SHOWN` in `test_same_decisions.py`",
}
_ELSEWHERE_BELOW = ("/users/", "/roles/", "/workspaces", "/ui-telemetry", "/mcp-servers", "/skills", "/webhooks")


def is_elsewhere(path: str) -> bool:
    """Returns whether other tests cover a path.

    `test_same_rows.py` covers users and roles, and `tests/workspaces` covers workspaces. MCP servers and
    skills are not compared with MLflow. Instead, `cli/tests/it/lists` checks that lists show exactly those
    that a caller may get. Webhooks are for administrators only, which docs/reference/levels.md shows.
    """
    return path in ELSEWHERE or any(part in path for part in _ELSEWHERE_BELOW)


def all_further() -> list[Asked]:
    of_experiments = [asked for number in (1, 2, 3) for asked in of_experiment(number)]
    of_models = [asked for name in ("model1", "model2", "prompt1", "nothing") for asked in of_model(name)]
    return [*of_experiments, *of_models, *SPELLED, *SHARED, *MISSING]
