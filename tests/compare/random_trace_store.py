"""Random traces, built identically on both sides over HTTP, what is written to them later, and searches of them."""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.compare import random_trace_filters
from tests.compare.differences import Difference
from tests.compare.random_traces import (
    DAY,
    EXPECTATIONS,
    FEEDBACK,
    ISSUES,
    METADATA,
    NAMES,
    PROMPTS,
    RUNS,
    SPAN_ATTRIBUTES,
    SPAN_TYPES,
    SPANS,
    START,
    STATES,
    TAGS,
)
from tests.compare.scenario import Step
from tests.support.http import Answer

_V2, _V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_EXPERIMENTS = ["e0", "e1", "e2"]
#: A search; of what else is sent, only the status counts: ids of assessments and times are the servers'.
SEARCH = "search traces"
#: Runs have ids that servers draw.
_RUN_NAMES = re.compile(rf"\b({'|'.join(RUNS)})\b")
_PATTERN_OF_A_RUN = re.compile(r"(run_id|sourceRun)`? +(NOT +)?R?I?LIKE", re.IGNORECASE)
_PAGES = [3, 7, 20, 500]
#: What is added to the number of a trace to get the number of another one in the same experiment.
_OTHERS = 3_000_000


def trace_id(number: int) -> str:
    return f"tr-{number:032x}"


def build(numbers: range, randomness: random.Random) -> Iterator[Step]:
    """The steps that make three experiments, three runs, and the traces with these numbers."""
    for name in _EXPERIMENTS:
        body = {"name": f"${{unique}} {name}"}
        yield _post(f"{_V2}/experiments/create", body, capture={name: "experiment_id"})
    for name in RUNS:
        body = {"experiment_id": "${e0}", "run_name": name, "start_time": 1}
        yield _post(f"{_V2}/runs/create", body, capture={name: "run.info.run_id"})
    for number in numbers:
        yield from _trace(number, randomness)


def _experiment(number: int) -> str:
    """The experiment of a trace: stock MLflow takes spans of another one, and ours refuses them."""
    return f"${{{_EXPERIMENTS[number % len(_EXPERIMENTS)]}}}"


def _trace(number: int, randomness: random.Random) -> Iterator[Step]:
    experiment = _experiment(number)
    # Some at the same time, so that the id decides.
    time = START + randomness.randrange(4) * DAY + randomness.choice([0, 1, 500, 60_000])
    spans = [_span(number, place, time, randomness) for place in range(randomness.choice([0, 1, 2, 3]))]
    writes = [_export(experiment, spans)] if spans else []
    writes.append(_start(number, experiment, time, randomness))
    # Clients send both in any order; half of the spans may come last.
    randomness.shuffle(writes)
    yield from writes
    if len(spans) > 1 and randomness.random() < 0.3:
        yield _export(experiment, spans[1:])
    for assessment in _assessments(randomness):
        yield _assess(number, assessment)
    for run in RUNS:
        if randomness.random() < 0.15:
            yield _link(number, run)
    versions = [prompt.split("/") for prompt in PROMPTS if randomness.random() < 0.15]
    if versions:
        body = {"trace_id": trace_id(number), "prompt_versions": [{"name": name, "version": of} for name, of in versions]}
        yield _post(f"{_V2}/traces/link-prompts", body)


def _some(values: dict, randomness: random.Random, share: float) -> dict:
    chosen = {key: randomness.choice(choices) for key, choices in values.items() if randomness.random() < share}
    return {key: _with_run_ids(value) for key, value in chosen.items()}


def _with_run_ids(text: Any) -> Any:
    """The text with the ids of the runs that it names."""
    return _RUN_NAMES.sub(r"${\1}", text) if isinstance(text, str) else text


def _start(number: int, experiment: str, time: int, randomness: random.Random) -> Step:
    tags = _some(TAGS, randomness, 0.4)
    if randomness.random() < 0.7:
        tags["mlflow.traceName"] = randomness.choice(NAMES)
    info = {
        "trace_id": trace_id(number),
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
        "request_time": _time_text(time),
        "state": randomness.choice(STATES),
        "tags": tags,
        "trace_metadata": _some(METADATA, randomness, 0.4),
    }
    duration = randomness.choice([None, 0, 7, 1500, 90_000])
    if duration is not None:
        info["execution_duration"] = f"{duration // 1000}.{duration % 1000:03}s"
    client = randomness.choice([None, "client-1", "client-2", f"c{number}"])
    if client is not None:
        info["client_request_id"] = client
    return _post(f"{_V3}/traces", {"trace": {"trace_info": info}})


def _time_text(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _span(trace: int, place: int, time: int, randomness: random.Random) -> dict:
    attributes = {key: _value(value) for key, value in _some(SPAN_ATTRIBUTES, randomness, 0.5).items()}
    kind = randomness.choice(SPAN_TYPES)
    if kind:
        attributes["mlflow.spanType"] = _value(kind)
    # Sometimes long before the trace.
    start = (time - randomness.choice([0, 0, 5_000, 60_000])) * 1_000_000
    return {
        "traceId": trace_id(trace)[3:],
        "spanId": f"{place + 1:016x}",
        **({"parentSpanId": f"{1:016x}"} if place else {}),
        "name": randomness.choice(SPANS),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000),
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
        "status": {"code": randomness.choice([0, 1, 2])},
    }


def _value(value: str | float) -> dict:
    return {"stringValue": value} if isinstance(value, str) else {"doubleValue": value}


def _export(experiment: str, spans: list[dict]) -> Step:
    headers = {"x-mlflow-experiment-id": experiment}
    return _post("/v1/traces", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, headers=headers)


def _assessments(randomness: random.Random) -> Iterator[dict]:
    # An assessment of a session is one of its first trace that names the session.
    session = {"mlflow.trace.session": "whatever"}
    for name, values in FEEDBACK.items():
        for _ in range(randomness.choice([0, 0, 1, 2])):
            metadata = session if randomness.random() < 0.15 else randomness.choice([{}, {"k": "v"}])
            yield {"assessment_name": name, "feedback": {"value": randomness.choice(values)}, "metadata": metadata}
    for name, values in EXPECTATIONS.items():
        if randomness.random() < 0.35:
            metadata = session if randomness.random() < 0.15 else {}
            value = randomness.choice([value for value in values if not isinstance(value, dict)])
            yield {"assessment_name": name, "expectation": {"value": value}, "metadata": metadata}
    for issue in ISSUES:
        if randomness.random() < 0.2:
            yield {"assessment_name": issue, "issue": {"issue_name": f"name of {issue}"}}


def _assess(number: int, assessment: dict) -> Step:
    source = {"source_type": "HUMAN", "source_id": "x"}
    body = {"assessment": {**assessment, "source": source, "create_time": _time_text(START)}}
    return _post(f"{_V3}/traces/{trace_id(number)}/assessments", body)


def _link(number: int, run: str) -> Step:
    return _post(f"{_V2}/traces/link-to-run", {"run_id": f"${{{run}}}", "trace_ids": [trace_id(number)]})


def change(numbers: range, randomness: random.Random) -> Step:
    """One write to a trace, which may be gone; or a trace that is new, or begins at another time."""
    number = randomness.choice(numbers)
    one = f"{_V3}/traces/{trace_id(number)}"
    # Not yet there, perhaps.
    other = number + _OTHERS
    time = START + randomness.randrange(4) * DAY
    key = randomness.choice(list(TAGS))
    tag = {"key": key, "value": randomness.choice(TAGS[key])}
    assessments = list(_assessments(randomness)) or [{"assessment_name": "quality", "feedback": {"value": 1}}]
    # None of those that are linked: in stock MLflow, a trace that is deleted and made anew has the links that it had before.
    named = [trace_id(other), trace_id(randomness.choice(numbers) + _OTHERS)]
    return randomness.choice([
        _json("PATCH", f"{one}/tags", tag),
        _json("PATCH", f"{one}/tags", tag),
        _json("DELETE", f"{one}/tags", {"key": key}),
        _assess(number, assessments[0]),
        _assess(number, assessments[0]),
        _link(number, randomness.choice(RUNS)),
        _start(number, _experiment(number), time, randomness),
        _start(other, _experiment(other), time, randomness),
        _export(_experiment(number), [_span(number, 1, time, randomness)]),
        _export(_experiment(number), [_span(number, 2, time, randomness), _span(other, 0, time, randomness)]),
        _post(f"{_V3}/traces/delete-traces", {"experiment_id": _experiment(other), "request_ids": named}),
    ])


def search(randomness: random.Random) -> Step:
    """A search of `random_trace_filters`, but for patterns of ids that servers draw."""
    places, text, orders = random_trace_filters.search(randomness)
    while _PATTERN_OF_A_RUN.search(text):
        places, text, orders = random_trace_filters.search(randomness)
    return _search(places, text, orders, randomness.choice(_PAGES))


def written_out(one_in: int = 1) -> list[Step]:
    """Its searches of what random ones seldom hit, or one in so many of them."""
    return [_search(*search, _PAGES[-1]) for search in random_trace_filters.written_out()[::one_in]]


def _search(places: list[int], text: str, orders: list[str], page: int) -> Step:
    of = lambda place: {"experiment_id": f"${{{_EXPERIMENTS[place]}}}"}  # noqa: E731
    body = {
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": of(place)} for place in places],
        "filter": _with_run_ids(text),
        "max_results": page,
        # Which of two ids comes first is the servers' choice.
        "order_by": [order.replace("run_id", "name") for order in orders],
    }
    return Step(SEARCH, "POST", f"{_V3}/traces/search", json=body, has_json=True, join_pages=True)


def _json(method: str, path: str, body: dict, **more: Any) -> Step:
    return Step(f"{method} {path}", method, path, json=body, has_json=True, **more)


def _post(path: str, body: dict, **more: Any) -> Step:
    return _json("POST", path, body, **more)


#: Regular expressions of Python that ours refuses, and says so.
_UNSUPPORTED = "which is not supported."
#: Where stock MLflow fails by accident: Python's words, and those of its database.
_CRASHES = re.compile(r"<database error>|IN expression list, .*|.*unsupported operand .*", re.DOTALL)


def _crashed(answer: Answer) -> bool:
    is_told = isinstance(answer.body, dict) and _CRASHES.fullmatch(answer.body.get("message", ""))
    return answer.status == 500 or (answer.status == 400 and bool(is_told))


def excuse(step: str, found: list[Difference], reference: Answer, subject: Answer) -> list[Difference]:
    """Of a search, the traces count, in their order and on their pages; of anything else, the status."""
    if reference.status != 200 or subject.status != 200:
        message = subject.body.get("message", "") if isinstance(subject.body, dict) else ""
        is_unsupported = step == SEARCH and subject.status == 400 and message.endswith(_UNSUPPORTED)
        wanted = found if step == SEARCH else [difference for difference in found if difference.field == "status"]
        return [] if is_unsupported or (_crashed(reference) and subject.status < 500) else wanted
    if step != SEARCH:
        return []
    traces, expected = ([info["trace_id"][-4:] for info in answer.body.get("traces", [])] for answer in (subject, reference))
    pages, expected_pages = subject.body["pages"], reference.body["pages"]
    differ = [Difference("traces", expected, traces)] if traces != expected else []
    return differ + ([Difference("pages", expected_pages, pages)] if pages != expected_pages else [])
