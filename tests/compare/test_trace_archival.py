"""Compares traces that were archived to files, and the settings of the archival, with stock MLflow. It
takes more than three minutes, because traces are archived only when no request may be changing them.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from mlflow.tracing.otel.otel_archival import traces_data_pb_to_spans

from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow, StockMlflow, binary, stock_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("trace archival")]

V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
#: Time after which this server has to have archived all traces.
_PATIENCE_SECONDS = 480
#: Start of the traces, in ns.
_BEGAN = 1_700_000_000_000_000_000
#: A pass of stock MLflow's archival job.
_PASS = """
import sys
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracing.trace_archival_service import _run_trace_archival_scheduler
store = SqlAlchemyStore(sys.argv[1], "mlflow-artifacts:/")
store.supports_trace_archival
_run_trace_archival_scheduler(store)
"""
_ATTRIBUTES = {
    "mlflow.spanInputs": json.dumps({"question": "why é", "n": [1, 2.5, None, True]}),
    "mlflow.spanOutputs": json.dumps("because"),
    "mlflow.spanType": "LLM",
    "plain": "text",
    "nested": json.dumps({"a": {"b": [{"c": []}, {}]}}),
    "count": 7,
    "share": 0.5,
    "flag": True,
    "list": ["x", "y"],
}


@dataclass
class Servers:
    """Both servers, and how their traces are archived."""

    stock: str
    ours: str
    #: The directories of their artifacts.
    directories: dict[str, Path]
    archive: Callable[[], None]

    def both(self, method: str, path: str, **arguments: Any) -> list[tuple[int, Any]]:
        """Sends a request to both servers. Returns the statuses and the bodies."""
        return [self._answer(name, requests.request(method, url + path, timeout=60, **arguments)) for name, url in (("stock", self.stock), ("ours", self.ours))]

    def _answer(self, name: str, response: requests.Response) -> tuple[int, Any]:
        text = response.content.decode().replace(str(self.directories[name]), "DIRECTORY")
        try:
            return response.status_code, json.loads(text)
        except ValueError:
            return response.status_code, text


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    root = tmp_path_factory.mktemp("archival")
    directories = {"stock": root / "stock/artifacts", "ours": root / "ours/artifacts"}
    for directory in directories.values():
        directory.mkdir(parents=True)
    config = root / "trace_archival.yaml"
    location = f"file://{directories['stock']}/archive"
    config.write_text(f"trace_archival:\n  enabled: true\n  location: {location}\n  retention: 30d\n  long_retention_allowlist: ['0']\n")
    environment = {"MLFLOW_TRACE_ARCHIVAL_CONFIG": str(config)}
    served = ("--artifacts-destination", str(directories["stock"]))
    stock = StockMlflow(root / "stock", artifact_options=served, environment=environment)

    def start() -> ServerlessMlflow:
        options = ("--artifacts-destination", str(directories["ours"]))
        return ServerlessMlflow(root / "ours", options=options, artifact_root="mlflow-artifacts:/")

    # The first start creates the table. A running server would notice new settings after a minute.
    start().stop()
    place = ["--data", str(root / "ours/data")]

    def program(*arguments: str) -> None:
        subprocess.run([str(binary()), *arguments, *place], env=child_environment(), check=True, capture_output=True)

    program("config", "set", "trace-archival-location", f"file://{directories['ours']}/archive", "--yes")
    program("config", "set", "trace-archival-allowlist", "0", "--yes")
    ours = start()

    def archive() -> None:
        database = f"sqlite:///{stock_database(root / 'stock')}"
        subprocess.run([sys.executable, "-c", _PASS, database], env=child_environment(**environment), check=True, capture_output=True)
        program("gc", "--expired", "--artifact-root", "mlflow-artifacts:/", "--artifacts-destination", str(directories["ours"]))

    yield Servers(stock.url, ours.url, directories, archive)
    ours.stop()
    stock.stop()


def _trace(number: int) -> str:
    return f"tr-{number:032x}"


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def _span(trace: int, number: int, parent: int | None = None, **other: Any) -> dict[str, Any]:
    span = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(_BEGAN + number),
        "endTimeUnixNano": str(_BEGAN + 1_000_000 * number),
        "attributes": [{"key": key, "value": _value(value)} for key, value in _ATTRIBUTES.items()],
        "events": [{"name": "event", "timeUnixNano": str(_BEGAN), "attributes": [{"key": "k", "value": _value(["v"])}]}],
        "status": {"code": 2, "message": "failed"} if number == 2 else {"code": 1},
    }
    return span | ({"parentSpanId": f"{parent:016x}"} if parent else {}) | other


def _export(servers: Servers, spans: list[dict[str, Any]], experiment: str = "0") -> list[tuple[int, Any]]:
    body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    return servers.both("POST", "/v1/traces", json=body, headers={"x-mlflow-experiment-id": experiment})


def _equal(answers: list[tuple[int, Any]]) -> Any:
    stock, ours = answers
    assert ours == stock
    return stock[1]


def _location(servers: Servers, trace: int) -> list[str]:
    infos = servers.both("GET", f"{V3}/traces/{_trace(trace)}")
    return [body["trace"]["trace_info"]["tags"]["mlflow.trace.spansLocation"] for _, body in infos]


def _get(servers: Servers, trace: int) -> list[tuple[int, Any]]:
    return servers.both("GET", f"{V3}/traces/get", params={"trace_id": _trace(trace)})


def test_settings(servers: Servers) -> None:
    enabled = [body["trace_archival_enabled"] for _, body in servers.both("GET", f"{V3}/server-info")]
    assert enabled == [True, True]

    def retention(experiment: str) -> str:
        answers = servers.both("GET", f"{V2}/experiments/get", params={"experiment_id": experiment})
        stock, ours = (body["experiment"]["effective_trace_archival_retention"] for _, body in answers)
        searched = servers.both("POST", f"{V2}/experiments/search", json={"max_results": 100})
        for _, body in searched:
            found = {each["experiment_id"]: each["effective_trace_archival_retention"] for each in body["experiments"]}
            assert found[experiment] == stock
        assert ours == stock
        return stock

    created = servers.both("POST", f"{V2}/experiments/create", json={"name": "other"})
    other = {body["experiment_id"] for _, body in created}
    assert len(other) == 1
    (other_id,) = other
    assert retention("0") == "30d"
    for value, of_allowed, of_other in [("12h", "12h", "12h"), ("720h", "720h", "720h"), ("60d", "60d", "30d")]:
        for experiment, expected in (("0", of_allowed), (other_id, of_other)):
            tag = {"experiment_id": experiment, "key": "mlflow.trace.archivalRetention", "value": json.dumps({"type": "duration", "value": value})}
            _equal(servers.both("POST", f"{V2}/experiments/set-experiment-tag", json=tag))
            assert retention(experiment) == expected
    for key, values in {
        "mlflow.trace.archivalRetention": ["", "30d", "{}", '{"type":"duration"}', '{"type":"duration","value":"0d"}', '{"type":"x","value":"1d"}', '{"type":"duration","value":"%sd"}' % ("1" * 32)],
        "mlflow.trace.archiveNow": ["", "[]", '{"older_than":1}', '{"older_than":"1w"}'],
    }.items():
        for value in values:
            tag = {"experiment_id": "0", "key": key, "value": value}
            _equal(servers.both("POST", f"{V2}/experiments/set-experiment-tag", json=tag))


def test_archived_traces(servers: Servers) -> None:
    for trace in (1, 2, 3, 4, 5):
        assert [status for status, _ in _export(servers, [_span(trace, 2, 1), _span(trace, 1), _span(trace, 3, 2)])] == [200, 200]
    malformed = _span(6, 1, attributes=[{"key": "large", "value": {"stringValue": "[92233720368547758080]"}}])
    assert [status for status, _ in _export(servers, [malformed])] == [200, 200]
    before = _get(servers, 1)
    tag = {"experiment_id": "0", "key": "mlflow.trace.archiveNow", "value": '{"older_than":"1d"}'}
    _equal(servers.both("POST", f"{V2}/experiments/set-experiment-tag", json=tag))

    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _location(servers, 5) != ["ARCHIVE_REPO", "ARCHIVE_REPO"]:
        assert time.monotonic() < deadline, _location(servers, 5)
        time.sleep(10)
        servers.archive()

    experiments = servers.both("GET", f"{V2}/experiments/get", params={"experiment_id": "0"})
    for _, body in experiments:
        assert "mlflow.trace.archiveNow" not in {tag["key"] for tag in body["experiment"].get("tags", [])}
    after = _get(servers, 1)
    assert [body["trace"]["spans"] for _, body in after] == [body["trace"]["spans"] for _, body in before]
    tags = [body["trace"]["trace_info"]["tags"] for _, body in after]
    assert tags[0]["mlflow.trace.archiveLocation"] == f"file://DIRECTORY/archive/0/traces/{_trace(1)}/artifacts"
    assert {key: value for key, value in tags[1].items() if key.startswith("mlflow.trace.")} == {
        key: value for key, value in tags[0].items() if key.startswith("mlflow.trace.")
    }
    failures = servers.both("GET", f"{V3}/traces/{_trace(6)}")
    assert [body["trace"]["trace_info"]["tags"]["mlflow.trace.archivalFailure"] for _, body in failures] == ["MALFORMED_TRACE"] * 2

    # MLflow reads both files, with equal spans.
    files = [servers.directories[name] / f"archive/0/traces/{_trace(1)}/artifacts/traces.pb" for name in ("stock", "ours")]
    read = [[span.to_dict() for span in traces_data_pb_to_spans(file.read_bytes())] for file in files]
    assert read[0] == read[1] and len(read[0]) == 3

    many = servers.both("POST", f"{V3}/traces/batchGet", json={"trace_ids": [_trace(1), _trace(2)]})
    many = many if many[0][0] == 200 else servers.both("GET", f"{V3}/traces/batchGet", params={"trace_ids": [_trace(1), _trace(2)]})
    assert [[trace["spans"] for trace in body["traces"]] for _, body in many][0] == [[trace["spans"] for trace in body["traces"]] for _, body in many][1]
    artifact = servers.both("GET", "/ajax-api/2.0/mlflow/get-trace-artifact", params={"request_id": _trace(1)})
    _equal(artifact)

    for filter_string in [
        "span.name = 'step 2'",
        "span.type = 'LLM'",
        "span.status = 'ERROR'",
        "span.content LIKE '%why%'",
        "trace.text LIKE '%because%'",
        "span.attributes.plain LIKE '%text%'",
        "tag.`mlflow.trace.spansLocation` = 'ARCHIVE_REPO'",
    ]:
        search = {"locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}], "filter": filter_string, "max_results": 100}
        found = servers.both("POST", f"{V3}/traces/search", json=search)
        stock, ours = ([trace["trace_id"] for trace in body.get("traces", [])] for _, body in found)
        assert sorted(ours) == sorted(stock), filter_string

    for spans in ([_span(1, 9)], [_span(2, 9), _span(1, 9)]):
        assert _equal(_export(servers, spans))["error_code"] == "INVALID_STATE"
    for key in ("mlflow.trace.spansLocation", "mlflow.trace.archiveLocation", "mlflow.trace.archivalFailure"):
        _equal(servers.both("PATCH", f"{V3}/traces/{_trace(6)}/tags", json={"key": key, "value": "x"}))
        _equal(servers.both("DELETE", f"{V3}/traces/{_trace(6)}/tags", json={"key": key}))

    # A file that is missing leaves a trace without spans, and does not prevent its deletion.
    for name in ("stock", "ours"):
        (servers.directories[name] / f"archive/0/traces/{_trace(2)}/artifacts/traces.pb").unlink()
    missing = _get(servers, 2)
    assert [(status, body["trace"].get("spans", [])) for status, body in missing] == [(200, []), (200, [])]
    deletion = {"experiment_id": "0", "request_ids": [_trace(1), _trace(2)]}
    assert _equal(servers.both("POST", f"{V3}/traces/delete-traces", json=deletion))["traces_deleted"] == 2
    assert not any(file.exists() for file in files)
    for name in ("stock", "ours"):
        (servers.directories[name] / f"archive/0/traces/{_trace(3)}/artifacts/traces.pb").write_bytes(b"\xff")
    broken = _get(servers, 3)
    assert [status for status, _ in broken] == [500, 500]
    assert {re.sub("(for).*", r"\1", body["message"]) for _, body in broken} == {"Trace data is corrupted for"}
