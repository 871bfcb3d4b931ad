"""Random traces in a store of stock MLflow, and their representation in the recording."""

import json
import random

from mlflow.entities import (
    AssessmentSource,
    Expectation,
    Feedback,
    IssueReference,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.entities.model_registry import PromptVersion
from mlflow.entities.span import Span
from mlflow.store.tracking.dbmodels.models import SqlAssessments, SqlEntityAssociation, SqlSpan
from opentelemetry import trace as opentelemetry
from opentelemetry.sdk.trace import ReadableSpan

NAMES = ["predict", "chat.run", "Ärger", "evaluate_all"]
STATES = ["OK", "ERROR", "IN_PROGRESS", "STATE_UNSPECIFIED"]
TAGS = {"env": ["prod", "Prod", "dev", "pro%d", ""], "team.name": ["ml", "search", "ml\n"], "a key": ["x", "'y'"]}
METADATA = {
    "mlflow.trace.session": ["s1", "s2", "S2", "s3"],
    "mlflow.trace.user": ["ann", "bob"],
    "mlflow.trace.tokenUsage": [
        '{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}',
        '{"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}',
    ],
    "mlflow.trace.cost": ['{"input_cost": 0.5, "output_cost": 1.0, "total_cost": 1.5}'],
    "mlflow.sourceRun": ["run1", "run2"],
    "note": ["a_b", "axb", "100%"],
}
RUNS = ["run1", "run2", "run3"]
PROMPTS = ["greet/1", "greet/2", "judge/1"]
ISSUES = ["iss-1", "iss-2"]
FEEDBACK = {"quality": [1, 0.5, 5, 4.0, "5", "good"], "correct": [True, False, "yes", "no"], "größe": ["süß", None, [1, "a"]]}
EXPECTATIONS = {"answer": ["Paris", "it's", 42, {"a": 1}], "quality": [3, "good"]}
SPANS = ["llm_call", "retrieve", "Retrieve", "tool%x", "päge"]
SPAN_TYPES = ["LLM", "CHAT_MODEL", "RETRIEVER", "TOOL", "UNKNOWN", None]
SPAN_ATTRIBUTES = {"model": ["gpt-4", "gpt-4o", "claude"], "llm.temp": [0.5, 1], "city": ["Zürich", "New York"]}

DAY = 86_400_000
START = 1_700_000_000_000
_COUNT = 40


def fill(store, randomness: random.Random) -> list[str]:
    """Creates three experiments with traces. Returns the ids of the experiments."""
    experiments = [store.create_experiment(f"e{number}") for number in range(3)]
    for number in range(_COUNT):
        _trace(store, randomness.choice(experiments), f"tr-{number:03}", randomness)
    return experiments


def _some(values: dict, randomness: random.Random, share: float) -> dict:
    return {key: randomness.choice(choices) for key, choices in values.items() if randomness.random() < share}


def _trace(store, experiment: str, trace_id: str, randomness: random.Random) -> None:
    # Some traces have the same time, so that they are sorted by id.
    time = START + randomness.randrange(4) * DAY + randomness.choice([0, 1, 500, 60_000])
    tags = _some(TAGS, randomness, 0.4)
    if randomness.random() < 0.7:
        tags["mlflow.traceName"] = randomness.choice(NAMES)
    store.start_trace(
        TraceInfo(
            trace_id=trace_id,
            trace_location=TraceLocation.from_experiment_id(experiment),
            request_time=time,
            execution_duration=randomness.choice([None, 0, 7, 1500, 90_000]),
            state=TraceState(randomness.choice(STATES)),
            tags=tags,
            trace_metadata=_some(METADATA, randomness, 0.4),
            client_request_id=randomness.choice([None, "client-1", "client-2", f"c{trace_id}"]),
        )
    )
    spans = [_span(trace_id, number, time, randomness) for number in range(randomness.choice([0, 1, 2, 3]))]
    store.log_spans(experiment, spans)
    for assessment in _assessments(randomness):
        assessment.trace_id = trace_id
        store.create_assessment(assessment)
    with store.ManagedSessionMaker(read_only=False) as session:
        for run in RUNS:
            if randomness.random() < 0.15:
                kinds = {"source_type": "trace", "destination_type": "run"}
                session.add(SqlEntityAssociation(association_id=f"a-{trace_id}-{run}", source_id=trace_id, destination_id=run, **kinds))
    for prompt in PROMPTS:
        if randomness.random() < 0.15:
            name, version = prompt.split("/")
            store.link_prompts_to_trace(trace_id, [PromptVersion(name=name, version=int(version), template="x")])


def _span(trace_id: str, number: int, time: int, randomness: random.Random) -> Span:
    attributes = {"mlflow.traceRequestId": json.dumps(trace_id)}
    kind = randomness.choice(SPAN_TYPES)
    if kind:
        attributes["mlflow.spanType"] = json.dumps(kind)
    for key, value in _some(SPAN_ATTRIBUTES, randomness, 0.5).items():
        attributes[key] = json.dumps(value, ensure_ascii=False)
    # Occasionally long before the trace.
    start = (time - randomness.choice([0, 0, 5_000, 60_000])) * 1_000_000
    # Does not need to match the trace's id, because it is not used here.
    context = opentelemetry.SpanContext(trace_id=1, span_id=number + 1, is_remote=False)
    status = randomness.choice([opentelemetry.StatusCode.OK, opentelemetry.StatusCode.ERROR, opentelemetry.StatusCode.UNSET])
    return Span(
        ReadableSpan(
            name=randomness.choice(SPANS),
            context=context,
            parent=None if number == 0 else opentelemetry.SpanContext(trace_id=1, span_id=1, is_remote=False),
            attributes=attributes,
            start_time=start,
            end_time=start + 1_000_000,
            status=opentelemetry.Status(status),
        )
    )


def _assessments(randomness: random.Random):
    source = AssessmentSource(source_type="HUMAN", source_id="x")
    # An assessment of a session is stored with the first trace of the session.
    session = {"mlflow.trace.session": "whatever"}
    for name, values in FEEDBACK.items():
        for _ in range(randomness.choice([0, 0, 1, 2])):
            metadata = session if randomness.random() < 0.15 else randomness.choice([None, {"k": "v"}])
            valid = randomness.random() < 0.8
            yield Feedback(name=name, value=randomness.choice(values), source=source, metadata=metadata, valid=valid)
    for name, values in EXPECTATIONS.items():
        if randomness.random() < 0.35:
            metadata = session if randomness.random() < 0.15 else None
            yield Expectation(name=name, value=randomness.choice(values), source=source, metadata=metadata)
    for issue in ISSUES:
        if randomness.random() < 0.2:
            yield IssueReference(issue_id=issue, issue_name=f"name of {issue}", source=source)


def read(store, experiments: list[str]) -> list[dict]:
    """Returns the traces in the store, sorted by id."""
    infos, _ = store.search_traces(locations=experiments, max_results=1000)
    return [_written_down(store, info, experiments) for info in sorted(infos, key=lambda info: info.trace_id)]


def _searched(values: dict, known: dict) -> dict:
    """Removes the values that the store adds."""
    return {key: value for key, value in values.items() if key in known or key == "mlflow.traceName"}


def _written_down(store, info: TraceInfo, experiments: list[str]) -> dict:
    with store.ManagedSessionMaker() as session:
        rows = session.query(SqlAssessments).filter(SqlAssessments.trace_id == info.trace_id).all()
        scoped = '"mlflow.trace.session":'
        assessments = sorted(
            [row.assessment_type, row.name, row.value, row.valid, scoped in (row.assessment_metadata or "")] for row in rows
        )
        links = session.query(SqlEntityAssociation).filter(SqlEntityAssociation.source_id == info.trace_id).all()
        linked = lambda kind: sorted(link.destination_id for link in links if link.destination_type == kind)  # noqa: E731
        spans = session.query(SqlSpan).filter(SqlSpan.trace_id == info.trace_id).order_by(SqlSpan.span_id).all()
        return {
            "id": info.trace_id,
            "experiment": experiments.index(info.experiment_id),
            "time": info.request_time,
            "duration": info.execution_duration,
            "state": info.state.value,
            "client": info.client_request_id,
            "tags": _searched(info.tags, TAGS),
            "metadata": _searched(info.trace_metadata, METADATA),
            "assessments": assessments,
            "runs": linked("run"),
            "prompts": linked("prompt_version"),
            "spans": [[span.name, span.type, span.status, span.start_time_unix_nano, span.content] for span in spans],
        }
