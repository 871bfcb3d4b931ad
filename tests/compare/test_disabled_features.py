"""Compares the responses of endpoints whose features are not implemented with those of MLflow 3.18.0,
in which these features are switched off.
"""

import re
from pathlib import Path

from tests.compare.conftest import COMPARED, NEXT_RELEASE
from tests.support.http import Request, Side

_LIST = Path(__file__).parents[2] / "docs/reference/mlflow-endpoints.tsv"
_DOMAINS = ("AI gateway", "assistant (UI)", "jobs", "jobs (genai evaluate)", "prompts (optimization jobs)")
#: Endpoints of issue detection and judges. In the list, they belong to domains that are implemented.
_OTHER_PATHS = ("/ajax-api/3.0/mlflow/issues/invoke", "/ajax-api/3.0/mlflow/issues/schedule/state", "/ajax-api/3.0/mlflow/scorer/invoke")
#: Requests that the UI sends without an action of the user. They are not compared, because this server
#: responds with an empty result.
_OF_THE_UI = re.compile("(GET /ajax-api/3.0/mlflow/(gateway/(endpoints|endpoints/bindings|model-definitions|secrets)/list|assistant/(config|providers)))$")
#: Headers of a request through a proxy. Stock MLflow treats it as a request from another host, to which
#: it refuses the Assistant.
_HEADERS = {"Content-Type": "application/json", "X-Forwarded-For": "203.0.113.9"}
_JUDGE = (
    '{"name": "judge", "aggregations": [], "is_session_level_scorer": false, "mlflow_version": "3.18.0", "serialization_version": 1,'
    ' "instructions_judge_pydantic_data": {"instructions": "Is {{ outputs }} good?", "model": "openai:/gpt-4"},'
    ' "builtin_scorer_class": null, "call_source": null}'
)


def _body(path: str, experiment: str) -> dict:
    """Returns a valid body, because stock MLflow validates some bodies before it responds that job
    execution is switched off.
    """
    evaluated = {"experiment_id": experiment, "trace_ids": ["tr-1"]}
    bodies = {
        "/ajax-api/3.0/jobs/": {"job_name": "invoke_scorer", "params": {}},
        "/ajax-api/3.0/mlflow/genai/evaluate/invoke": {**evaluated, "serialized_scorers": [_JUDGE]},
        "/ajax-api/3.0/mlflow/scorer/invoke": {**evaluated, "serialized_scorer": _JUDGE},
        "/ajax-api/3.0/mlflow/issues/invoke": {**evaluated, "categories": ["a"], "provider": "openai", "endpoint_name": "e"},
        "/ajax-api/3.0/mlflow/issues/schedule/state": {"experiment_id": experiment},
        "/3.0/mlflow/prompt-optimization/jobs": {
            "experiment_id": experiment,
            "source_prompt_uri": "prompts:/a/1",
            "config": {"optimizer_type": "OPTIMIZER_TYPE_GEPA"},
        },
        "/3.0/mlflow/prompt-optimization/jobs/search": {"experiment_id": experiment},
    }
    return next((body for known, body in bodies.items() if path.endswith(known)), {})


def _requests() -> list[tuple[str, str]]:
    requests = []
    for line in _LIST.read_text().splitlines()[1:]:
        method, path, _, domain, *_ = line.split("\t")
        if domain in _DOMAINS or path in _OTHER_PATHS:
            paths = [path, path.replace("/api/", "/ajax-api/", 1)] if path.startswith("/api/") else [path]
            requests += [(method, re.sub(r"\{\w+\}", "x", path)) for path in paths]
    # For these methods, `search` is the ID of a job.
    requests += [("GET", "/ajax-api/3.0/jobs/search"), ("DELETE", "/api/3.0/mlflow/prompt-optimization/jobs/search")]
    return [(method, path) for method, path in requests if not _OF_THE_UI.match(f"{method} {path}")]


@NEXT_RELEASE
def test_responses_are_those_of_a_server_with_the_features_switched_off(next_reference: Side, subject: Side, record_property) -> None:
    created = [side.send(Request.of_json("POST", "/api/2.0/mlflow/experiments/create", {"name": "switched off"})) for side in (next_reference, subject)]
    experiments = [answer.body["experiment_id"] for answer in created]
    different = []
    requests = _requests()
    for method, path in requests:
        answers = []
        for side, experiment in zip((next_reference, subject), experiments, strict=True):
            if method == "GET":
                query = {"experiment_id": experiment} if path.endswith("/jobs/search") else {}
                request = Request(method, path, query, None, _HEADERS)
            else:
                request = Request.of_json(method, path, _body(path, experiment), _HEADERS)
            answer = side.send(request)
            answers.append((answer.status, answer.kind, answer.body))
        if answers[0] != answers[1]:
            different.append(f"{method} {path}: {answers[0]}, but here {answers[1]}")
    record_property(COMPARED, len(requests))
    assert not different, "\n".join(different)
    assert len(requests) > 110
