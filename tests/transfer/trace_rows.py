"""Rows of an MLflow database with traces, for any version of its schema. `schemas.fill` leaves out
tables and columns that a version does not have.
"""

import base64
import gzip
import json
from pathlib import Path

from tests.transfer.rows import UNICODE, T

EXPERIMENT = 3
RUN = "00000010" + "0123456789ab" + "4" + "e" * 11
#: Ids of traces: with spans in rows, in files, without any, and that of an old client.
IN_ROWS, IN_FILE, IN_ARCHIVE, ZIPPED, LOST, UNFINISHED = (f"tr-{number:032x}" for number in range(1, 7))
OLD = "0123456789abcdef" * 2
#: Traces whose spans are reported as not found.
LOST_SPANS = [LOST]


def _id(number: int, length: int) -> str:
    return base64.b64encode(number.to_bytes(length)).decode()


def _span(trace: int, number: int, parent: int | None = None, request: str | None = None, **attributes) -> dict:
    """Returns a span as MLflow 3 stores it."""
    dumped = {key.replace("__", "."): json.dumps(value) for key, value in attributes.items()}
    return {
        "trace_id": _id(trace, 16),
        "span_id": _id(number, 8),
        "parent_span_id": _id(parent, 8) if parent else None,
        "name": f"span {number} {UNICODE}",
        "start_time_unix_nano": T * 1_000_000 + number,
        "end_time_unix_nano": T * 1_000_000 + 1_000 * number,
        "events": [{"name": "event", "time_unix_nano": T * 1_000_000 + 5, "attributes": {"number": 1, "text": UNICODE, "list": [1.5, 2.5]}}],
        "status": {"code": "STATUS_CODE_ERROR", "message": "wrong"} if number == 2 else {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {"mlflow.traceRequestId": json.dumps(request or f"tr-{trace:032x}")} | dumped,
        "links": [{"trace_id": IN_FILE, "span_id": f"{7:016x}", "attributes": {"a": "b"}}] if number == 1 else [],
    }


def _row(trace: str, span: dict, content: str | None = None) -> dict:
    number = int.from_bytes(base64.b64decode(span["span_id"]))
    parent = span["parent_span_id"]
    kind = span["attributes"].get("mlflow.spanType")
    cost = json.loads(span["attributes"].get("mlflow.llm.cost", "{}"))
    return {
        "trace_id": trace,
        "experiment_id": EXPERIMENT,
        "span_id": f"{number:016x}",
        "parent_span_id": f"{int.from_bytes(base64.b64decode(parent)):016x}" if parent else None,
        "name": span["name"],
        "type": json.loads(kind) if kind else None,
        "status": span["status"]["code"].removeprefix("STATUS_CODE_"),
        "start_time_unix_nano": span["start_time_unix_nano"],
        "end_time_unix_nano": span["end_time_unix_nano"],
        "content": json.dumps(span, ensure_ascii=False) if content is None else content,
        **cost,
    }


def _info(trace: str, number: int, **others) -> dict:
    row = {"request_id": trace, "experiment_id": EXPERIMENT, "timestamp_ms": T + 1_000 * number, "execution_time_ms": 5, "status": "OK"}
    return row | others


def _assessment(number: int, kind: str, value: object, **others) -> dict:
    row = {
        "assessment_id": f"a-{number}",
        "trace_id": IN_ROWS,
        "name": f"assessment {number}",
        "assessment_type": kind,
        "value": json.dumps(value),
        "error": None,
        "created_timestamp": T + number,
        "last_updated_timestamp": T + 2 * number,
        "source_type": "HUMAN",
        "source_id": "ann",
        "valid": True,
        "experiment_id": EXPERIMENT,
        "trace_timestamp_ms": T + 1_000,
        "is_numeric_value": False,
    }
    return row | others


def _assessments() -> list[dict]:
    error = json.dumps({"error_code": "E", "error_message": UNICODE, "stack_trace": None})
    metadata = json.dumps({"mlflow.assessment.sourceRunId": RUN, "b": UNICODE})
    return [
        _assessment(1, "feedback", 0.5, rationale=UNICODE, valid=False, is_numeric_value=True, aggregate_value=0.5),
        _assessment(2, "feedback", "yes", overrides="a-1", source_type="AI_JUDGE", source_id=None, aggregate_value=1.0),
        _assessment(3, "feedback", None, error=error, source_type="CODE"),
        _assessment(4, "expectation", [1, {"a": UNICODE}], assessment_metadata=metadata, run_id=RUN, span_id=f"{1:016x}"),
        _assessment(5, "expectation", UNICODE),
        _assessment(6, "issue", {"issue_name": "slow"}),
        _assessment(7, "feedback", True, assessment_metadata=json.dumps({"mlflow.trace.session": "s"}), aggregate_value=1.0),
    ]


def traces(files: Path) -> dict[str, list[dict]]:
    """Returns rows with traces, and writes the files of their spans below a directory."""
    root = _span(1, 1, mlflow__spanType="CHAIN", mlflow__spanInputs={"question": UNICODE}, values=[1, 2.5, None])
    cost = {"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3}
    call = _span(1, 2, 1, mlflow__spanType="LLM", mlflow__llm__cost=cost, mlflow__llm__model="gpt-4o", mlflow__llm__provider="openai")
    archived = {IN_ARCHIVE: _span(3, 3, x={"é": [1, 2.5, True, None]}), ZIPPED: _span(4, 4)}
    _write_artifact(files / "moved", IN_FILE, {"spans": [_span(2, 7)]})
    old = {
        "name": "old",
        "context": {"span_id": "0x4d", "trace_id": "0x4e"},
        "parent_id": None,
        "start_time": T * 1_000_000,
        "end_time": T * 1_000_000 + 1,
        "status_code": "OK",
        "status_message": "",
        "attributes": {"mlflow.traceRequestId": json.dumps(OLD), "mlflow.spanType": '"CHAIN"'},
        "events": [],
    }
    _write_artifact(files, OLD, {"spans": [old], "request": "{}", "response": "1"})
    for trace, span in archived.items():
        _write_archive(files, trace, span)
    usage = {"input_tokens": 3, "output_tokens": "4", "total_tokens": 7.5}
    tags = {
        IN_ROWS: {"mlflow.traceName": UNICODE, "mlflow.trace.spansLocation": "TRACKING_STORE", "k": "v", "empty": ""},
        IN_FILE: {"mlflow.trace.spansLocation": "ARTIFACT_REPO", "mlflow.artifactLocation": str(files / "moved/traces" / IN_FILE / "artifacts")},
        OLD: {"mlflow.traceName": "old", "mlflow.artifactLocation": f"file://{files}/traces/{OLD}/artifacts"},
        LOST: {"mlflow.trace.spansLocation": "ARTIFACT_REPO"},
        **{
            trace: {"mlflow.trace.spansLocation": "ARCHIVE_REPO", "mlflow.trace.archiveLocation": (files / "archive" / trace).as_uri()}
            for trace in archived
        },
    }
    metadata = {
        IN_ROWS: {"mlflow.trace.session": "s", "mlflow.sourceRun": RUN, "mlflow.trace.tokenUsage": json.dumps(usage), "long": "x" * 300},
        OLD: {"mlflow.traceInputs": '{"q": 1}', "mlflow.traceOutputs": f'"{UNICODE}"', "mlflow.trace_schema.version": "2"},
        IN_FILE: {"mlflow.trace.cost": json.dumps({"total_cost": 1e-07, "input_cost": 2}), "mlflow.trace.session": UNICODE * 30},
        ZIPPED: {"mlflow.gateway.endpointId": "e"},
    }
    return {
        "experiments": [
            {
                "experiment_id": EXPERIMENT,
                "name": "traces",
                "lifecycle_stage": "active",
                "artifact_location": str(files),
                "creation_time": T,
                "last_update_time": T,
                "workspace": "default",
            }
        ],
        "trace_info": [
            _info(IN_ROWS, 1, client_request_id="request", request_preview=UNICODE, response_preview=""),
            _info(IN_FILE, 2, status="ERROR"),
            _info(IN_ARCHIVE, 3),
            _info(ZIPPED, 4),
            _info(LOST, 5, status="TRACE_STATUS_UNSPECIFIED"),
            _info(UNFINISHED, 6, status="IN_PROGRESS", execution_time_ms=None),
            _info(OLD, 6),
        ],
        "trace_tags": [{"request_id": trace, "key": key, "value": value} for trace, of in tags.items() for key, value in of.items()],
        "trace_request_metadata": [{"request_id": trace, "key": key, "value": value} for trace, of in metadata.items() for key, value in of.items()],
        "trace_metrics": [{"request_id": IN_ROWS, "key": "total_tokens", "value": 9.0}, {"request_id": IN_ROWS, "key": "other", "value": 0.5}],
        "spans": [
            _row(IN_ROWS, root),
            _row(IN_ROWS, call),
            *(_row(trace, span, "") for trace, span in archived.items()),
        ],
        "span_metrics": [{"trace_id": IN_ROWS, "span_id": f"{2:016x}", "key": key, "value": value} for key, value in cost.items()],
        "assessments": _assessments(),
        "entity_associations": [
            {"association_id": f"{number}", "source_type": "trace", "source_id": IN_ROWS, "destination_type": kind, "destination_id": id_, "created_time": T}
            for number, (kind, id_) in enumerate([("run", RUN), ("prompt_version", "p/1"), ("prompt_version", f"{UNICODE[:6]}/2")])
        ],
    }


def _write_artifact(files: Path, trace: str, content: dict) -> None:
    directory = files / "traces" / trace / "artifacts"
    directory.mkdir(parents=True)
    (directory / "traces.json").write_text(json.dumps(content))


def _write_archive(files: Path, trace: str, span: dict) -> None:
    from mlflow.entities.span import Span
    from mlflow.tracing.otel.otel_archival import spans_to_traces_data_pb

    directory = files / "archive" / trace
    directory.mkdir(parents=True)
    content = spans_to_traces_data_pb([Span.from_dict(span)])
    (directory / "traces.pb").write_bytes(gzip.compress(content) if trace == ZIPPED else content)
