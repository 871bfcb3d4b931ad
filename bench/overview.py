"""Measures the overview of a day with many traces, which the UI charts by hour."""

import json
import secrets
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

from bench.connection import Connection

_DAY_MS = 86_400_000
#: Number of traces per request.
_OF_EXPORT = 100
_EXPORTERS = 4
_ROUNDS = 5
_POLL_SECONDS = 2
_PATIENCE_SECONDS = 3_600
_METRICS = "/api/3.0/mlflow/traces/metrics"
#: The concurrent requests, each for hourly values.
_QUESTIONS = {
    "trace_count": [{"aggregation_type": "COUNT"}],
    "latency": [{"aggregation_type": "PERCENTILE", "percentile_value": percent} for percent in (50, 90, 99)],
    "total_tokens": [{"aggregation_type": "SUM"}],
}


@dataclass
class Overview:
    """The measurements."""

    traces: int
    #: Number of traces in blocks. The marks of the remaining ones are not packed yet.
    packed: int
    #: Seconds for storing the traces, and for packing them afterwards.
    stored_seconds: float
    packed_seconds: float
    #: Seconds for all responses, in each round.
    seconds: list[float]

    def page(self) -> list[str]:
        """Returns a section of a page."""
        each = ", ".join(f"{seconds:.2f}" for seconds in self.seconds)
        return [
            "## Overview of a day",
            "",
            f"{self.traces:,} traces of one day are stored in {self.stored_seconds:.0f} s, and {self.packed:,} of them are in blocks {self.packed_seconds:.0f} s later."
            " Three concurrent requests",
            "over HTTP query, by hour, their number, the 50th, 90th and 99th percentile of their durations, and the sum of their",
            "tokens. The server is `serve` with its data on disk, and its cache is empty the first time. All three responses",
            f"arrive after {each} s.",
            "",
        ]


def measure(url: str, data: Path, traces: int) -> Overview:
    """Stores traces of yesterday with one span each, waits until they are packed, and requests the
    overview.
    """
    connection = Connection(url)
    experiment = json.loads(connection.post("experiments/create", {"name": f"overview-{time.time_ns()}"}))["experiment_id"]
    day = (int(time.time() * 1000) // _DAY_MS - 1) * _DAY_MS
    start = time.monotonic()
    firsts = range(0, traces, _OF_EXPORT)
    with ThreadPoolExecutor(_EXPORTERS) as threads:
        list(threads.map(lambda part: _store(url, experiment, day, traces, firsts[part::_EXPORTERS]), range(_EXPORTERS)))
    stored = time.monotonic()
    left = _wait_until_packed(data, experiment)
    packed = time.monotonic()
    seconds = [_ask(url, experiment, day, traces) for _ in range(_ROUNDS)]
    return Overview(traces, traces - left, stored - start, packed - stored, seconds)


def _store(url: str, experiment: str, day: int, traces: int, firsts: range) -> None:
    connection = Connection(url)
    headers = {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": experiment}
    for first in firsts:
        spans = [_span(number, day + number * _DAY_MS // traces) for number in range(first, min(first + _OF_EXPORT, traces))]
        export = TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
        connection.send("/v1/traces", export.SerializeToString(), headers)
    connection.close()


def _span(number: int, start_ms: int) -> Span:
    """Returns the span of a model call. Durations and tokens vary."""
    tokens = {"input_tokens": number % 911, "output_tokens": number % 97, "total_tokens": number % 911 + number % 97}
    texts = {
        "mlflow.spanType": "CHAT_MODEL",
        "mlflow.spanInputs": {"question": f"What is in the middle of flower {number}? "},
        "mlflow.spanOutputs": {"answer": "The carpels are, and around them the stamens. "},
        "mlflow.chat.tokenUsage": tokens,
    }
    attributes = [KeyValue(key=key, value=AnyValue(string_value=json.dumps(value))) for key, value in texts.items()]
    times = {"start_time_unix_nano": start_ms * 10**6, "end_time_unix_nano": (start_ms + number * 37 % 9_001) * 10**6}
    named = {"name": "answer", "attributes": attributes, "status": Status(code=Status.STATUS_CODE_OK)}
    return Span(trace_id=secrets.token_bytes(16), span_id=secrets.token_bytes(8), **named, **times)


def _wait_until_packed(data: Path, experiment: str) -> int:
    """Waits until most marks are removed, and none has been removed for two of the indexer's ticks,
    one minute each. Returns the number of remaining marks. Each partition keeps a few.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    first = last = _marks(data, experiment)
    since = time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        now = _marks(data, experiment)
        if now != last:
            last, since = now, time.monotonic()
        if last < first / 10 and time.monotonic() - since > 130:
            return last
    raise TimeoutError(f"the traces are not packed after {_PATIENCE_SECONDS} s")


def _marks(data: Path, experiment: str) -> int:
    """Returns the number of the experiment's traces that are not in blocks, from the embedded
    engine's file.
    """
    with sqlite3.connect(f"file:{data / 'dynamodb.sqlite'}?mode=ro", uri=True, timeout=30) as database:
        marks = "SELECT COUNT(*) FROM \"_rows::mlflow\" WHERE pk BETWEEN ? AND ? AND sk BETWEEN 'S:M#' AND 'S:M$'"
        return database.execute(marks, (f"S:TR#{experiment}#", f"S:TR#{experiment}$")).fetchone()[0]


def _ask(url: str, experiment: str, day: int, traces: int) -> float:
    """Returns the seconds until the last response has arrived."""
    times = {"time_interval_seconds": 3_600, "start_time_ms": day, "end_time_ms": day + _DAY_MS - 1}

    def answer(metric: str) -> list[dict]:
        connection = Connection(url)
        asked = {"experiment_ids": [experiment], "view_type": "TRACES", "metric_name": metric, **times}
        body = json.dumps(asked | {"aggregations": _QUESTIONS[metric]}).encode()
        answered = json.loads(connection.send(_METRICS, body, {"Content-Type": "application/json"}))
        connection.close()
        return answered["data_points"]

    start = time.perf_counter()
    with ThreadPoolExecutor(len(_QUESTIONS)) as threads:
        points = dict(zip(_QUESTIONS, threads.map(answer, _QUESTIONS), strict=True))
    seconds = time.perf_counter() - start
    counted = sum(point["values"]["COUNT"] for point in points["trace_count"])
    if counted != traces or any(len(of) != 24 for of in points.values()):
        raise RuntimeError(f"the overview is about {counted} traces in {[len(of) for of in points.values()]} hours")
    return seconds
