"""Traces with spans and assessments, and their links to runs."""

import json

from mlflow.entities import Experiment, Span, Trace, TraceInfo, ViewType
from mlflow.store.tracking.dbmodels.models import SqlAssessments
from mlflow.store.tracking.utils import trace_analytics as analytics
from mlflow.tracing.constant import SpanAttributeKey, SpansLocation, TraceMetadataKey, TraceTagKey
from mlflow.tracing.otel.translation import translate_span_when_storing
from mlflow.tracing.utils import TraceJSONEncoder

from mlflow_serverless_dump.context import Context
from mlflow_serverless_dump.database import fingerprint
from mlflow_serverless_dump.ids import derived, experiment_number, optional_run_id, run_id
from mlflow_serverless_dump.requests import in_parallel, pages

_PAGE_SIZE = 100
_TABLES_OF_TRACE = (("trace_tags", "request_id"), ("trace_request_metadata", "request_id"), ("trace_metrics", "request_id"))
_TABLES_OF_TRACE += (("assessments", "trace_id"), ("spans", "trace_id"), ("span_metrics", "trace_id"))
_SOURCE_RUN = "mlflow.sourceRun"


def dump(context: Context, experiment: Experiment) -> None:
    """Dumps the traces of an experiment, one transaction per trace. The row of a trace is written
    last.
    """

    def read(info: TraceInfo) -> Trace:
        return context.client.get_trace(info.trace_id, display=False)

    any_trace = False
    search = context.client.search_traces
    for page in pages(search, locations=[experiment.experiment_id], include_spans=False, max_results=_PAGE_SIZE):
        any_trace |= bool(page)
        infos = [trace.info for trace in page if not _is_complete(context, trace.info)]
        for info, trace in in_parallel(context.pool, context.window, read, infos):
            _dump_trace(context, info, trace)
    if any_trace:
        _dump_links(context, experiment)


def _is_complete(context: Context, info: TraceInfo) -> bool:
    # A trace in progress can get more spans without changing in search results.
    is_complete = info.state.value != "IN_PROGRESS" and context.database.is_complete("trace", info.trace_id, _fingerprint(info))
    context.report.unchanged["traces"] += is_complete
    return is_complete


def _fingerprint(info: TraceInfo) -> str:
    return fingerprint(info.to_dict())


def _dump_trace(context: Context, info: TraceInfo, trace: Trace | Exception) -> None:
    """Writes a trace. If its spans cannot be read, it is written without them, and not recorded as
    complete.
    """
    try:
        if isinstance(trace, Exception):
            _write(context, info, [])
            context.database.commit()
            context.report.failed("spans of trace", info.trace_id, trace)
        else:
            _write(context, trace.info, trace.data.spans)
            context.database.complete("trace", info.trace_id, _fingerprint(info))
        context.report.written["traces"] += 1
    except Exception as error:
        context.database.rollback()
        context.report.failed("trace", info.trace_id, error)


def _write(context: Context, info: TraceInfo, spans: list[Span]) -> None:
    database = context.database
    id_ = info.trace_id
    number = experiment_number(info.experiment_id)
    for table, column in _TABLES_OF_TRACE:
        database.delete(table, **{column: id_})
    tags = dict(info.tags)
    name = tags.pop(TraceTagKey.TRACE_NAME, None)
    if spans:
        # In the dump, spans are always stored in rows, even if the source has them in a file.
        tags[TraceTagKey.SPANS_LOCATION] = SpansLocation.TRACKING_STORE.value
    metadata = dict(info.trace_metadata)
    if metadata.get(_SOURCE_RUN):
        metadata[_SOURCE_RUN] = run_id(metadata[_SOURCE_RUN])
    columns = dict.fromkeys([*analytics.TOKEN_COLUMN_BY_KEY.values(), *analytics.COST_COLUMN_BY_KEY.values(), "session_id"])
    columns |= analytics.analytics_columns_from_metadata(metadata)
    metadata = {key: value for key, value in metadata.items() if key not in analytics.PROMOTED_TRACE_METADATA_KEYS}
    # Prevents later writers of spans from changing times and totals.
    metadata[TraceMetadataKey.TRACE_INFO_FINALIZED] = "true"
    database.insert("trace_tags", [{"request_id": id_, "key": key, "value": value} for key, value in tags.items()])
    database.insert("trace_request_metadata", [{"request_id": id_, "key": key, "value": value} for key, value in metadata.items()])
    for assessment in info.assessments:
        entity = SqlAssessments.from_mlflow_entity(assessment)
        row = {column.name: getattr(entity, column.name) for column in SqlAssessments.__table__.columns}
        row |= {"trace_id": id_, "experiment_id": number, "trace_timestamp_ms": info.request_time, "run_id": optional_run_id(entity.run_id)}
        database.insert("assessments", [row | {"valid": True if entity.valid is None else entity.valid}])
    for span in spans:
        database.insert("spans", [_span_row(id_, number, span)])
    row = {
        "request_id": id_,
        "experiment_id": number,
        "timestamp_ms": info.request_time,
        "execution_time_ms": info.execution_duration,
        "status": info.state.value,
        "client_request_id": info.client_request_id or None,
        "request_preview": info.request_preview,
        "response_preview": info.response_preview,
        "trace_name": name,
    }
    database.replace("trace_info", [row | columns])


def _span_row(trace_id: str, number: int, span: Span) -> dict:
    content = translate_span_when_storing(span)
    attributes = content.get("attributes") or {}
    cost = _parsed(attributes.get(SpanAttributeKey.LLM_COST))
    cost = cost if isinstance(cost, dict) else {}
    return {
        "trace_id": trace_id,
        "experiment_id": number,
        "span_id": span.span_id,
        "parent_span_id": span.parent_id,
        "name": span.name,
        "type": span.span_type,
        "status": span.status.status_code.value,
        "start_time_unix_nano": span.start_time_ns,
        "end_time_unix_nano": span.end_time_ns,
        "content": json.dumps(content, cls=TraceJSONEncoder, ensure_ascii=False),
        **{column: analytics.finite_float_or_none(cost.get(column)) for column in analytics.COST_COLUMN_BY_KEY.values()},
        "model_name": analytics.bounded_model_dimension(_parsed(attributes.get(SpanAttributeKey.MODEL))),
        "model_provider": analytics.bounded_model_dimension(_parsed(attributes.get(SpanAttributeKey.MODEL_PROVIDER))),
    }


def _parsed(value: object) -> object:
    """Parses a JSON text. Returns any other value unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _dump_links(context: Context, experiment: Experiment) -> None:
    """Writes the links of traces to the runs of an experiment. The run that created a trace is
    stored in the trace's metadata instead of a link.
    """
    runs = (
        run.info.run_id
        for page in pages(context.client.search_runs, experiment_ids=[experiment.experiment_id], run_view_type=ViewType.ALL, max_results=1000)
        for run in page
    )

    def read(run: str) -> list[TraceInfo]:
        search = context.client.search_traces
        found = pages(search, locations=[experiment.experiment_id], run_id=run, include_spans=False, max_results=_PAGE_SIZE)
        return [trace.info for page in found for trace in page]

    for run, linked in in_parallel(context.pool, context.window, read, runs):
        if isinstance(linked, Exception):
            context.report.failed("traces linked to run", run, linked)
            continue
        for info in linked:
            if info.trace_metadata.get(_SOURCE_RUN) != run:
                link = {"source_type": "trace", "source_id": info.trace_id, "destination_type": "run", "destination_id": run_id(run)}
                link |= {"association_id": "a-" + derived("link", info.trace_id, run), "created_time": info.request_time}
                context.database.insert("entity_associations", [link])
    context.database.commit()
    context.report.note("the time at which a trace was linked to a run is not returned by the API: the trace's own time is used")
