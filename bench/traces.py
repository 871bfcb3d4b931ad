"""How many spans a second each side stores, from exporters that send at the same time.

    python -m bench.traces --subject target/release/mlflow-serverless --output docs/measured/traces-benchmark.md
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
#: When the trace of the template begins, in ns, and how long after that something begins or ends in it, in ms.
_BEGIN = 1_700_000_000 * 10**9
_OFFSETS = [*range(SPANS), *range(20 - SPANS + 1, 21)]
_SPAN_IDS = [bytes([number]) * 8 for number in range(1, SPANS + 1)]
#: The share of an exporter's first requests that are not looked at when the slowest are.
_WARM_UP_SHARE = 0.3


@dataclass
class Side:
    """What was measured of a server, of each round."""

    name: str
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def row(self) -> str:
        """A line of the table."""
        spans = [rate * SPANS for rate in self.rates]
        each = "/".join(f"{rate:,.0f}" for rate in spans)
        slowest = statistics.quantiles(self.seconds, n=100)
        return (
            f"| {self.name} | {statistics.median(spans):,.0f} | {each} |"
            f" {1000 * statistics.median(self.seconds):.1f} | {1000 * slowest[98]:.1f} |"
        )


def export() -> bytes:
    """A request with the five spans of an agent, about 4 KB, as MLflow's client writes them."""
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
    """The times of a trace that begins then, in ns, as they stand in a request."""
    return [(begin + offset * 10**6).to_bytes(8, "little") for offset in _OFFSETS]


def exporter(experiment: str, seconds: list[float]) -> Callable[[Connection], None]:
    """Sends one trace after the other, each with an id and times of its own, and notes how long each took."""
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
    """A round: several exporters send for so long, into a new experiment."""
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
    """What is written."""
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
    """Start, measure, write."""
    arguments = argparse.ArgumentParser(description="Measure how many spans are stored beside stock MLflow.")
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"a release build ({release})")
    arguments.add_argument("--rounds", type=int, default=3, help="for each side (3)")
    arguments.add_argument("--seconds", type=float, default=8, help="of each round (8)")
    arguments.add_argument("--overview", type=int, default=100_000, help="traces of a day of which an overview is asked (100,000)")
    arguments.add_argument("--output", type=Path, help="Markdown file to write; printed if there is none")
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
