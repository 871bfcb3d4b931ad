"""All kinds of writes, for tests that interrupt a server: each has a function that writes, and one
that checks whether the write is complete.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.http import Answer, Request, Side

_V2 = "/api/2.0/mlflow"
_V3 = "/api/3.0/mlflow"
#: Limit of pages of a thousand records each, which is more than any test writes.
_MOST_PAGES = 100
_PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Kind:
    """A kind of write. `write` performs the write with this number, and raises the exception of
    `requests` if there is no response. `is_there` checks whether the write is stored completely,
    given the result of `write`.
    """

    name: str
    write: Callable[[Side, int], Any]
    is_there: Callable[[Side, int, Any], bool]


def ask(side: Side, method: str, path: str, body: dict | None = None, **query: Any) -> Answer:
    if body is None:
        return side.send(Request(method, path, query))
    return side.send(Request.of_json(method, path, body))


def done(side: Side, method: str, path: str, body: dict | None = None, **query: Any) -> Any:
    """Sends a request, and returns the body of the successful response.

    Retries on a 503, as MLflow's client does. On a busy machine, a change may lose against
    concurrent ones for as long as the server retries it.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = ask(side, method, path, body, **query)
        if answer.status != 503 or time.monotonic() > deadline:
            break
    assert answer.status == 200, answer
    return answer.body


def _new_run(side: Side, name: str) -> str:
    body = {"experiment_id": "0", "run_name": name}
    return done(side, "POST", f"{_V2}/runs/create", body)["run"]["info"]["run_id"]


def _run(side: Side, run_id: str) -> dict:
    return done(side, "GET", f"{_V2}/runs/get", run_id=run_id)["run"]


def _items(pairs: list[dict]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in pairs}


def kinds(side: Side) -> list[Kind]:
    """Creates the run, model and dataset that the writes refer to, and returns all kinds."""
    run = _new_run(side, "written to")
    fields = {"experiment_id": "0", "name": "model"}
    logged = done(side, "POST", f"{_V2}/logged-models", fields)["model"]["info"]["model_id"]
    done(side, "POST", f"{_V2}/registered-models/create", {"name": "registered"})
    dataset = done(side, "POST", f"{_V3}/datasets/create", {"name": "questions"})["dataset"]["dataset_id"]

    def post(path: str, body: Callable[[int], dict]) -> Callable[[Side, int], Any]:
        return lambda side, number: done(side, "POST", f"{_V2}/{path}", body(number))

    def of_run(name: str) -> Callable[[Side], dict]:
        return lambda side: _items(_run(side, run)["data"].get(name, []))

    def delete_tag(side: Side, number: int) -> None:
        tag = {"run_id": run, "key": f"gone {number}"}
        done(side, "POST", f"{_V2}/runs/set-tag", tag | {"value": "x"})
        done(side, "POST", f"{_V2}/runs/delete-tag", tag)

    def delete_run(side: Side, number: int) -> str:
        deleted = _new_run(side, f"deleted {number}")
        done(side, "POST", f"{_V2}/runs/delete", {"run_id": deleted})
        return deleted

    def restore_run(side: Side, number: int) -> str:
        restored = delete_run(side, number)
        done(side, "POST", f"{_V2}/runs/restore", {"run_id": restored})
        return restored

    def update_run(side: Side, number: int) -> str:
        ended = _new_run(side, f"ended {number}")
        done(side, "POST", f"{_V2}/runs/update", {"run_id": ended, "status": "FINISHED", "end_time": number + 1})
        return ended

    def delete_experiment(side: Side, number: int) -> str:
        new = done(side, "POST", f"{_V2}/experiments/create", {"name": f"deleted {number}"})["experiment_id"]
        done(side, "POST", f"{_V2}/experiments/delete", {"experiment_id": new})
        return new

    def finalize(side: Side, number: int) -> str:
        new = done(side, "POST", f"{_V2}/logged-models", {"experiment_id": "0", "name": f"m{number}"})
        model = new["model"]["info"]["model_id"]
        body = {"model_id": model, "status": "LOGGED_MODEL_READY"}
        done(side, "PATCH", f"{_V2}/logged-models/{model}", body)
        return model

    def new_version(side: Side, number: int) -> str:
        body = {"name": "registered", "source": "s3://bucket/root/model", "tags": [{"key": "n", "value": str(number)}]}
        return done(side, "POST", f"{_V2}/model-versions/create", body)["model_version"]["version"]

    def version(side: Side, number: int, made: str) -> bool:
        found = done(side, "GET", f"{_V2}/model-versions/get", name="registered", version=made)["model_version"]
        return _items(found.get("tags", [])) == {"n": str(number)}

    def rename_model(side: Side, number: int) -> None:
        done(side, "POST", f"{_V2}/registered-models/create", {"name": f"old {number}"})
        body = {"name": f"old {number}", "new_name": f"new {number}"}
        done(side, "POST", f"{_V2}/registered-models/rename", body)

    def is_renamed(side: Side, number: int, _: Any) -> bool:
        old = ask(side, "GET", f"{_V2}/registered-models/get", name=f"old {number}")
        new = ask(side, "GET", f"{_V2}/registered-models/get", name=f"new {number}")
        return (old.status, new.status) == (404, 200)

    def alias(side: Side, number: int) -> str:
        made = new_version(side, number)
        body = {"name": "registered", "alias": f"a{number}", "version": made}
        done(side, "POST", f"{_V2}/registered-models/alias", body)
        return made

    def has_alias(side: Side, number: int, made: str) -> bool:
        found = ask(side, "GET", f"{_V2}/registered-models/alias", name="registered", alias=f"a{number}")
        return found.status == 200 and found.body["model_version"]["version"] == made

    def merge_records(side: Side, number: int) -> None:
        records = [{"inputs": {"n": number, "m": part}, "outputs": "x"} for part in range(3)]
        done(side, "POST", f"{_V3}/datasets/{dataset}/records", {"records": json.dumps(records)})

    def has_records(side: Side, number: int, _: Any) -> bool:
        found, token = [], ""
        for _ in range(_MOST_PAGES):
            page = done(side, "GET", f"{_V3}/datasets/{dataset}/records", max_results=1000, page_token=token)
            found += [record["inputs"] for record in json.loads(page["records"])]
            token = page.get("next_page_token")
            if token is None:
                break
        assert token is None, f"more than {_MOST_PAGES} pages of records"
        return [inputs for inputs in found if inputs["n"] == number] == [{"n": number, "m": part} for part in range(3)]

    def register_scorer(side: Side, number: int) -> None:
        body = {"experiment_id": "0", "name": f"s{number}", "serialized_scorer": "{}"}
        done(side, "POST", f"{_V3}/scorers/register", body)

    def log_input(number: int) -> dict:
        new = {"name": f"set {number}", "digest": "d", "source_type": "local", "source": "s"}
        return {"run_id": run, "datasets": [{"dataset": new}]}

    def has_input(side: Side, number: int, _: Any) -> bool:
        inputs = _run(side, run)["inputs"]["dataset_inputs"]
        return f"set {number}" in [used["dataset"]["name"] for used in inputs]

    def status(path: str, expected: int, **query: str) -> Callable[[Side, int, Any], bool]:
        def check(side: Side, number: int, made: Any) -> bool:
            named = {key: value.format(number=number, made=made) for key, value in query.items()}
            return ask(side, "GET", f"{path.format(made=made)}", **named).status == expected

        return check

    def stage(expected: str) -> Callable[[Side, int, Any], bool]:
        return lambda side, _, made: _run(side, made)["info"]["lifecycle_stage"] == expected

    params, tags = of_run("params"), of_run("tags")
    points = f"{_V2}/metrics/get-history"
    one_logged = f"{_V2}/logged-models"

    def steps(side: Side) -> list[int]:
        history = done(side, "GET", points, run_id=run, metric_key="loss")
        return [point["step"] for point in history.get("metrics", [])]

    def batch(number: int) -> dict:
        many = range(20)
        return {
            "run_id": run,
            "params": [{"key": f"batch {number} {part}", "value": "v" * 100} for part in many],
            "tags": [{"key": f"batch {number} {part}", "value": "v"} for part in many],
        }

    def has_batch(side: Side, number: int, _: Any) -> bool:
        keys = {f"batch {number} {part}" for part in range(20)}
        data = _run(side, run)["data"]
        return keys <= _items(data["params"]).keys() and keys <= _items(data["tags"]).keys()

    def experiment_stage(side: Side, _: int, made: str) -> bool:
        found = done(side, "GET", f"{_V2}/experiments/get", experiment_id=made)["experiment"]
        return found["lifecycle_stage"] == "deleted"

    def experiment_tags(side: Side) -> dict[str, str]:
        return _items(done(side, "GET", f"{_V2}/experiments/get", experiment_id="0")["experiment"].get("tags", []))

    def logged_model(side: Side, model: str) -> dict:
        return done(side, "GET", f"{one_logged}/{model}")["model"]

    def is_updated(side: Side, number: int, made: str) -> bool:
        info = _run(side, made)["info"]
        return (info["status"], info["end_time"]) == ("FINISHED", number + 1)

    traces = f"{_V3}/traces"

    def trace_id(number: int, of: int) -> str:
        """Returns the trace id for a write with this number and of this kind."""
        return f"tr-{of * 100_000 + number:032x}"

    def export(side: Side, number: int) -> str:
        trace = trace_id(number, 1)
        span = {"traceId": trace[3:], "name": "step", "startTimeUnixNano": "1700000000000000000",
                "endTimeUnixNano": "1700000000005000000"}
        root, child = span | {"spanId": f"{1:016x}"}, span | {"spanId": f"{2:016x}", "parentSpanId": f"{1:016x}"}
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [root, child]}]}]}
        headers = {"Content-Type": "application/json", "x-mlflow-experiment-id": "0"}
        answer = side.send(Request.of_json("POST", "/v1/traces", body, headers))
        assert answer.status == 200, answer
        return trace

    def has_spans(side: Side, number: int, made: str) -> bool:
        found = done(side, "GET", f"{traces}/get", trace_id=made)["trace"]
        return len(found["spans"]) == 2 and is_found(side, made)

    def is_found(side: Side, trace: str) -> bool:
        """Returns whether a search finds the trace and no other."""
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
        body = {"locations": [place], "filter": f"request_id = '{trace}'"}
        found = done(side, "POST", f"{traces}/search", body).get("traces", [])
        return [info["trace_id"] for info in found] == [trace]

    def start(side: Side, trace: str) -> str:
        info = {
            "trace_id": trace,
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}},
            "request_time": "2023-11-14T22:13:20Z",
            "state": "OK",
        }
        done(side, "POST", traces, {"trace": {"trace_info": info}})
        return trace

    def delete_trace(side: Side, number: int) -> str:
        trace = start(side, trace_id(number, 3))
        done(side, "POST", f"{traces}/delete-traces", {"experiment_id": "0", "request_ids": [trace]})
        return trace

    judged = start(side, trace_id(0, 4))

    def judge(side: Side, number: int) -> str:
        assessment = {"assessment_name": f"a{number}", "feedback": {"value": number}}
        body = {"assessment": assessment | {"create_time": "2023-11-14T22:13:20Z"}}
        made = done(side, "POST", f"{traces}/{judged}/assessments", body)["assessment"]
        return made["assessment_id"]

    def trace_info(side: Side, trace: str) -> dict:
        return done(side, "GET", f"{traces}/{trace}")["trace"]["trace_info"]

    def is_judged(side: Side, number: int, made: str) -> bool:
        found = [one for one in trace_info(side, judged)["assessments"] if one["assessment_id"] == made]
        return [one["feedback"]["value"] for one in found] == [number]

    point = {"run_id": run, "key": "loss", "value": 1.0, "timestamp": 1}
    return [
        Kind("new experiment", post("experiments/create", lambda n: {"name": f"e {n}"}),
             status(f"{_V2}/experiments/get-by-name", 200, experiment_name="e {number}")),
        Kind("deleted experiment", delete_experiment, experiment_stage),
        Kind("tag of an experiment",
             post("experiments/set-experiment-tag", lambda n: {"experiment_id": "0", "key": f"t{n}", "value": "v"}),
             lambda side, n, _: f"t{n}" in experiment_tags(side)),
        Kind("new run", lambda side, n: _new_run(side, f"r {n}"), stage("active")),
        Kind("updated run", update_run, is_updated),
        Kind("deleted run", delete_run, stage("deleted")),
        Kind("restored run", restore_run, stage("active")),
        Kind("metric", post("runs/log-metric", lambda n: point | {"step": n}), lambda side, n, _: n in steps(side)),
        Kind("param", post("runs/log-parameter", lambda n: {"run_id": run, "key": f"p{n}", "value": "v"}),
             lambda side, n, _: f"p{n}" in params(side)),
        Kind("tag", post("runs/set-tag", lambda n: {"run_id": run, "key": f"t{n}", "value": "v"}),
             lambda side, n, _: f"t{n}" in tags(side)),
        Kind("deleted tag", delete_tag, lambda side, n, _: f"gone {n}" not in tags(side)),
        Kind("batch", post("runs/log-batch", batch), has_batch),
        Kind("dataset of a run", post("runs/log-inputs", log_input), has_input),
        Kind("output", post("runs/outputs", lambda n: {"run_id": run, "models": [{"model_id": f"m-{n}", "step": n}]}),
             lambda side, n, _: n in [put["step"] for put in _run(side, run)["outputs"]["model_outputs"]]),
        Kind("logged model", finalize,
             lambda side, n, made: logged_model(side, made)["info"]["status"] == "LOGGED_MODEL_READY"),
        Kind("tag of a logged model",
             lambda side, n: done(side, "PATCH", f"{one_logged}/{logged}/tags", {"tags": [{"key": f"t{n}", "value": "v"}]}),
             lambda side, n, _: f"t{n}" in _items(logged_model(side, logged)["info"].get("tags", []))),
        Kind("registered model", post("registered-models/create", lambda n: {"name": f"rm {n}"}),
             status(f"{_V2}/registered-models/get", 200, name="rm {number}")),
        Kind("renamed model", rename_model, is_renamed),
        Kind("model version", new_version, version),
        Kind("alias", alias, has_alias),
        Kind("evaluation dataset",
             lambda side, n: done(side, "POST", f"{_V3}/datasets/create", {"name": f"d {n}"})["dataset"]["dataset_id"],
             status(f"{_V3}/datasets/{{made}}", 200)),
        Kind("records", merge_records, has_records),
        Kind("scorer", register_scorer, status(f"{_V3}/scorers/get", 200, experiment_id="0", name="s{number}")),
        Kind("exported trace", export, has_spans),
        Kind("described trace", lambda side, n: start(side, trace_id(n, 2)), lambda side, n, made: is_found(side, made)),
        Kind("deleted trace", delete_trace,
             lambda side, n, made: ask(side, "GET", f"{traces}/{made}").status == 404 and not is_found(side, made)),
        Kind("tag of a trace",
             lambda side, n: done(side, "PATCH", f"{traces}/{judged}/tags", {"key": f"t{n}", "value": "v"}),
             lambda side, n, _: f"t{n}" in trace_info(side, judged)["tags"]),
        Kind("feedback", judge, is_judged),
    ]
