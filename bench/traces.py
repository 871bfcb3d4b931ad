r"""Measures the number of spans per second that each side stores, from concurrent exporters.

  python -m bench.traces --subject target/release/mlflow-serverless \
      --output docs/measured/traces-benchmark.md
"""

import argparse
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

import bench.machine as machine
from bench.connection import Connection, calls_a_second
from bench.overview import Overview
from bench.overview import measure as measure_overview
from tests.support.servers import ServerlessMlflow, StockMlflow

EXPORTERS = 8
SPANS = 5
_WARM_UP_SECONDS = 2
_TRACE = b"T" * 16
#: Start time of the template's trace in ns, and the offsets in ms at which spans begin and end.
_BEGIN = 1_700_000_000 * 10**9
_OFFSETS = [*range(SPANS), *range(20 - SPANS + 1, 21)]
_SPAN_IDS = [bytes([number]) * 8 for number in range(1, SPANS + 1)]
#: Fraction of an exporter's first requests that are ignored for the latencies.
_WARM_UP_SHARE = 0.3


@dataclass
class Side:
    """The measurements of a server, in each round."""

    name: str
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def row(self) -> str:
        """Returns a row of the table."""
        spans = [rate * SPANS for rate in self.rates]
        each = "/".join(f"{rate:,.0f}" for rate in spans)
        slowest = statistics.quantiles(self.seconds, n=100)
        return (
            f"| {self.name} | {statistics.median(spans):,.0f} | {each} |"
            f" {1000 * statistics.median(self.seconds):.1f} | {1000 * slowest[98]:.1f} |"
        )


def export() -> bytes:
    """Returns a request with the five spans of an agent, about 4 KB, like those of
    MLflow's client.
    """
    kinds = ["AGENT", "RETRIEVER", "CHAT_MODEL", "TOOL", "CHAT_MODEL"]
    spans = []
    for number, (span_id, kind) in enumerate(zip(_SPAN_IDS, kinds, strict=True)):
        texts = {
            "mlflow.traceRequestId": "tr-" + _TRACE.hex(),
            "mlflow.spanType": kind,
            "mlflow.spanInputs": {"question": "What is in the middle of a flower? " * 8},
            "mlflow.spanOutputs": {"answer": "The carpels are, and around them the stamens. " * 6},
        }
        if kind == "CHAT_MODEL":
            texts["mlflow.chat.tokenUsage"] = {"input_tokens": 812, "output_tokens": 96, "total_tokens": 908}
        attributes = [KeyValue(key=key, value=AnyValue(string_value=json.dumps(value))) for key, value in texts.items()]
        times = {"start_time_unix_nano": _BEGIN + number * 10**6, "end_time_unix_nano": _BEGIN + (20 - number) * 10**6}
        parent = _SPAN_IDS[0] if number else b""
        named = {"name": kind.lower(), "attributes": attributes, "status": Status(code=Status.STATUS_CODE_OK)}
        spans.append(Span(trace_id=_TRACE, span_id=span_id, parent_span_id=parent, **named, **times))
    return TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]).SerializeToString()


def moments(begin: int) -> list[bytes]:
    """Returns the times of a trace that begins at `begin`, in ns, as bytes of a request."""
    return [(begin + offset * 10**6).to_bytes(8, "little") for offset in _OFFSETS]


def exporter(experiment: str, seconds: list[float]) -> Callable[[Connection], None]:
    """Returns a call that sends a trace with new ids and times, and records how long it took."""
    template, times = export(), moments(_BEGIN)
    headers = {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": experiment}

    def send(connection: Connection) -> None:
        trace = secrets.token_bytes(16)
        body = template.replace(_TRACE.hex().encode(), trace.hex().encode()).replace(_TRACE, trace)
        for then, now in zip(times, moments(time.time_ns() - 20 * 10**6), strict=True):
            body = body.replace(then, now)
        start = time.perf_counter()
        connection.send("/v1/traces", body, headers)
        seconds.append(time.perf_counter() - start)

    return send


def measure(side: Side, url: str, seconds: float) -> None:
    """Runs a round: several exporters send spans to a new experiment for this many seconds."""
    connection = Connection(url)
    created = connection.post("experiments/create", {"name": f"spans-{time.time_ns()}"})
    connection.close()
    taken: list[list[float]] = [[] for _ in range(EXPORTERS)]
    calls = [exporter(json.loads(created)["experiment_id"], times) for times in taken]
    side.rates.append(calls_a_second(url, calls, _WARM_UP_SECONDS, seconds))
    for times in taken:
        side.seconds += times[int(len(times) * _WARM_UP_SHARE) :]


def page(
    options: argparse.Namespace, program: Path, sides: tuple[Side, Side], load: float, overview: Overview | None
) -> list[str]:
    """Returns the page."""
    stock, subject = sides
    ratio = statistics.median(subject.rates) / statistics.median(stock.rates)
    return [
        "# OTLP ingestion compared with stock MLflow",
        "",
        "Written by `bench/traces.py`, see `bench/README.md`.",
        "",
        f"- ours: {machine.version_of(program)}, `serve` with the embedded engine, data on disk",
        f"- stock: MLflow {version('mlflow')}, `mlflow server --workers 1` on SQLite",
        f"- both, and the exporters, on one machine and disk: {machine.described()}; load average {load:.1f} after the rounds",
        f"- {EXPORTERS} exporters, each request has a new trace of {SPANS} spans in protobuf, {len(export()):,} bytes; {options.rounds} rounds of"
        f" {options.seconds:.0f} s for each server, in turn",
        "",
        "| server | spans stored per second | each round | request, median (ms) | request, p99 (ms) |",
        "|---|---:|---|---:|---:|",
        stock.row(),
        subject.row(),
        "",
        f"Ours stores {ratio:.1f} times as many spans as stock MLflow.",
        "",
        *(overview.page() if overview else []),
    ]


def main() -> int:
    """Starts the servers, measures, and writes the page."""
    arguments = argparse.ArgumentParser(description="Measure the storage of spans compared with stock MLflow.")
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"path of a release build ({release})")
    arguments.add_argument("--rounds", type=int, default=3, help="rounds for each side (3)")
    arguments.add_argument("--seconds", type=float, default=8, help="duration of each round (8)")
    arguments.add_argument("--overview", type=int, default=100_000, help="traces of the day in the overview (100,000)")
    arguments.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = arguments.parse_args()
    program = options.subject.resolve()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stops:
        directory = Path(temporary)
        subject = ServerlessMlflow(directory / "subject", program=program)
        stops.callback(subject.stop)
        stock = StockMlflow(directory / "stock")
        stops.callback(stock.stop)
        sides = (Side("stock"), Side("ours"))
        for number in range(options.rounds):
            turns = list(zip(sides, (stock.url, subject.url), strict=True))
            for side, url in turns if number % 2 else reversed(turns):
                measure(side, url, options.seconds)
        load = os.getloadavg()[0]
        data = directory / "subject" / "data"
        overview = measure_overview(subject.url, data, options.overview) if options.overview else None
    text = "\n".join(page(options, program, sides, load, overview))
    if options.output:
        options.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
