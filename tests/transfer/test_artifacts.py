"""`import --check-artifacts` finds the files of imported entities where this server serves them."""

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.s3 import LocalS3
from tests.support.servers import binary
from tests.transfer import rows, schemas
from tests.transfer.commands import run
from tests.transfer.schemas import SchemaTemplates

_OLD = "s3://old/mlflow"
_TRACE = f"tr-{9:032x}"
_ATTACHMENT = "5a4ce1c0-0000-4000-8000-000000000001"
_TABLES = [{"path": "tables/t.json", "type": "table"}]


@pytest.fixture
def source(sqlite: SchemaTemplates) -> str:
    """Returns a database in which a run has logged a table, and another one a model."""
    source = sqlite.create(schemas.INSTALLED)
    entities = rows.everything(with_long_ids=False)
    entities["tags"] += [
        {"run_uuid": rows.FINISHED, "key": "mlflow.loggedArtifacts", "value": json.dumps(_TABLES)},
        {"run_uuid": rows.LONG, "key": "mlflow.log-model.history", "value": json.dumps([{"artifact_path": "model"}])},
    ]
    schemas.fill(source, entities)
    schemas.fill(source, _trace_with_attachment())
    return source


def _trace_with_attachment() -> dict[str, list[dict]]:
    """Returns the rows of a trace, with a span whose input refers to an attachment."""
    attachment = f"mlflow-attachment://{_ATTACHMENT}?content_type=image%2Fpng&trace_id={_TRACE}&size=7"
    attributes = {"mlflow.traceRequestId": json.dumps(_TRACE), "mlflow.spanInputs": json.dumps({"image": attachment})}
    id_ = base64.b64encode(bytes(7) + b"1").decode()
    times = {"start_time_unix_nano": rows.T * 1_000_000, "end_time_unix_nano": rows.T * 1_000_000 + 5}
    span = {
        "trace_id": base64.b64encode(bytes.fromhex(_TRACE[3:])).decode(),
        "span_id": id_,
        "parent_span_id": None,
        "name": "s",
        **times,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": attributes,
    }
    row = {"trace_id": _TRACE, "experiment_id": 1, "span_id": f"{0x31:016x}", "name": "s", "status": "OK", **times}
    return {
        "trace_info": [{"request_id": _TRACE, "experiment_id": 1, "timestamp_ms": rows.T, "execution_time_ms": 5, "status": "OK"}],
        "trace_tags": [{"request_id": _TRACE, "key": "mlflow.trace.spansLocation", "value": "TRACKING_STORE"}],
        "spans": [row | {"content": json.dumps(span)}],
    }


def _check(source: str, data: Path, *options: str, environment: Mapping[str, str] = {}) -> tuple[int, str]:
    command = [binary(), "import", "--from", source, "--data", data, "--check-artifacts", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=os.environ | environment)
    return done.returncode, done.stdout + done.stderr


#: Files below the server's storage: those that runs name, the ready logged model, the versions, and an attachment.
_FILES = [
    f"1/{rows.FINISHED}/artifacts/tables/t.json",
    f"1/{rows.FINISHED}/artifacts/model/MLmodel",
    f"1/{rows.LONG}/artifacts/model/MLmodel",
    f"1/models/{rows.LOGGED_MODELS[0]}/artifacts/MLmodel",
    f"1/traces/{_TRACE}/artifacts/attachments/{_ATTACHMENT}",
]


def test_missing_files_in_a_directory_are_listed(source: str, tmp_path: Path) -> None:
    moved, data = ("--artifacts", f"{_OLD}=mlflow-artifacts:"), tmp_path / "data"
    status, report = _check(source, data, *moved, "--dry-run")
    assert status != 0 and "the artifacts of 6 are missing" in report, report
    for file in _FILES:
        path = data / "artifacts" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    status, report = _check(source, data, *moved)
    assert status == 0, report
    assert "artifacts of runs: 2 have files, 4 have none" in report, report
    assert "artifacts of logged models: 1 have files, 2 have none" in report, report
    assert "artifacts of model versions: 1 not served by this server, in s3://elsewhere: churn version 4" in report, report
    assert "artifacts of traces with attachments: 1 have files" in report, report
    (data / "artifacts" / _FILES[-1]).unlink()
    status, report = _check(source, data, *moved)
    assert status != 0 and f"artifacts of traces with attachments: 1 missing: {_TRACE}" in report, report
    (data / "artifacts" / _FILES[-1]).write_text("content")
    (data / "artifacts" / _FILES[0]).unlink()
    status, report = _check(source, data, *moved)
    assert status != 0 and f"artifacts of runs: 1 missing: {rows.FINISHED}" in report, report
    assert "0 entities were not imported, and 0 differ from the source; the artifacts of 1 are missing" in report


def test_files_in_a_bucket_are_found(source: str, tmp_path: Path, s3: LocalS3) -> None:
    bucket = s3.make_bucket("checked-by-an-import")
    for file in _FILES[1:]:
        bucket.put(f"prefix/{file}", b"content")
    options = ("--artifacts", f"{_OLD}=s3://{bucket.name}/prefix", "--artifacts-destination", f"s3://{bucket.name}/prefix")
    status, report = _check(source, tmp_path / "data", *options, environment=s3.environment)
    assert status != 0 and f"artifacts of runs: 1 missing: {rows.FINISHED}" in report, report
    bucket.put(f"prefix/{_FILES[0]}", b"content")
    status, report = _check(source, tmp_path / "data", *options, environment=s3.environment)
    assert status == 0 and "artifacts of model versions: 2 have files" in report, report


def test_a_dry_run_lists_what_would_not_be_served(source: str, tmp_path: Path) -> None:
    report = run("import", "--from", source, "--data", tmp_path / "data", "--dry-run")
    assert "artifacts of runs: 6 not served by this server, in s3://old: " in report, report
    report = run("import", "--from", source, "--data", tmp_path / "data", "--dry-run", "--artifacts", f"{_OLD}=mlflow-artifacts:")
    assert "artifacts of runs: 6 served by this server" in report, report
