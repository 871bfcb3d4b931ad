"""Measures the export, import and reindexing of runs with long metric histories.

  .venv/bin/python -m bench.moving --output docs/measured/moving.md    # about four minutes
  .venv/bin/python -m bench.moving --runs 200                          # quick check; prints the page

Build the program first: cargo build --profile optimized --package mlflow-serverless --features
sql-servers. Run nothing else on the machine meanwhile.
"""

import argparse
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bench.machine as machine
from bench.connection import Connection, for_each
from bench.indexed import wait_until_indexed
from bench.throughput import CONNECTIONS
from tests.support.servers import ServerlessMlflow

_METRICS = 10
_POINTS = 99
_BEGIN = 1_700_000_000_000
_SEARCHES = [
    {},
    {"filter": "metrics.m3 > 50", "order_by": ["metrics.m3 DESC"]},
    {"filter": "params.p1 = '3' AND tags.t1 = 'v3'"},
    {"filter": "params.p2 = '4' AND params.p3 = '6'"},
    {"filter": "attributes.status = 'FINISHED'", "order_by": ["attributes.end_time DESC"]},
    {"filter": "attributes.run_name LIKE '%trial 3%'"},
]
_PAUSE_SECONDS = 0.15
#: Duration of the searches on an idle server.
_IDLE_SECONDS = 15
#: Limits for the number of runs that wait to be indexed. `None` is the default.
_WAITING = [None, 50, 100, 500]


@dataclass
class Measurement:
    """A command, and the ratios of the medians of concurrent searches to those on an idle server."""

    name: str
    seconds: float
    runs: int
    ratios: list[float]

    def row(self) -> str:
        ratios = f"{statistics.median(self.ratios):.1f} | {max(self.ratios):.1f}" if self.ratios else " | "
        return f"| {self.name} | {self.seconds:.1f} | {self.runs / self.seconds:.0f} | {ratios} |"


def _load(url: str, runs: int) -> str:
    """Loads runs, each with its points in one call, and returns their experiment."""
    connection = Connection(url)
    experiment = json.loads(connection.post("experiments/create", {"name": "moved"}))["experiment_id"]
    connection.close()

    def send(connection: Connection, number: int) -> None:
        start = _BEGIN + number * 1_000
        tags = [{"key": f"t{tag}", "value": f"v{number % 7}"} for tag in range(4)]
        body = {"experiment_id": experiment, "start_time": start, "run_name": f"run-{number} trial {number % 17}", "tags": tags}
        run = json.loads(connection.post("runs/create", body))["run"]["info"]["run_id"]
        metrics = [
            {"key": f"m{metric}", "value": (number * 37 + metric * 11 + step) % 1_000 / 7, "timestamp": start + step, "step": step}
            for metric in range(_METRICS)
            for step in range(_POINTS)
        ]
        params = [{"key": f"p{param}", "value": str(number * param % 53)} for param in range(5)]
        connection.post("runs/log-batch", {"run_id": run, "metrics": metrics, "params": params})
        connection.post("runs/update", {"run_id": run, "status": "FINISHED", "end_time": start + 500})

    for_each(url, range(runs), send, CONNECTIONS)
    return experiment


def _medians(url: str, experiment: str, is_over: Callable[[], bool]) -> list[float]:
    """Sends the searches in turn, and returns the median of each in seconds."""
    connection = Connection(url)
    times: list[list[float]] = [[] for _ in _SEARCHES]
    while not is_over():
        for seconds, search in zip(times, _SEARCHES, strict=True):
            start = time.perf_counter()
            connection.post("runs/search", {"experiment_ids": [experiment], "max_results": 100} | search)
            seconds.append(time.perf_counter() - start)
            time.sleep(_PAUSE_SECONDS)
    connection.close()
    return [statistics.median(seconds) for seconds in times if seconds]


def _timed(command: list[object]) -> float:
    start = time.monotonic()
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.monotonic() - start


def _reindex_while_searching(program: Path, data: Path, experiment: str, runs: int, waiting: int | None) -> Measurement:
    options = [] if waiting is None else ["--at-once", str(waiting)]
    server = ServerlessMlflow(data.parent, program=program, options=["--no-ui"])
    try:
        _medians(server.url, experiment, _after(2))
        idle = _medians(server.url, experiment, _after(_IDLE_SECONDS))
        start = time.monotonic()
        with subprocess.Popen([program, "reindex", "--data", data, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            busy = _medians(server.url, experiment, lambda: process.poll() is not None)
        seconds = time.monotonic() - start
        if process.returncode != 0:
            raise RuntimeError("reindex has failed")
    finally:
        server.stop()
    name = "`reindex` while searching" + (f", at most {waiting} runs waiting" if waiting else "")
    return Measurement(name, seconds, runs, [one / other for one, other in zip(busy, idle, strict=False)])


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _measured(program: Path, runs: int, directory: Path) -> list[Measurement]:
    data, file = directory / "server/data", directory / "exported.db"
    server = ServerlessMlflow(data.parent, program=program, options=["--no-ui"])
    try:
        experiment = _load(server.url, runs)
        wait_until_indexed(data)
    finally:
        server.stop()
    measured = [Measurement("`export`", _timed([program, "export", "--to", file, "--data", data]), runs, [])]
    with sqlite3.connect(file) as database:
        (points,) = database.execute("SELECT count(*) FROM metrics").fetchone()
    if points != runs * _METRICS * _POINTS:
        raise RuntimeError(f"{points} points were exported")
    for number in range(2):
        copy = directory / f"imported{number}"
        seconds = _timed([program, "import", "--from", f"sqlite:///{file}", "--data", copy])
        measured.append(Measurement("`import`, with indexing and verification", seconds, runs, []))
        shutil.rmtree(copy)
    for _ in range(2):
        measured.append(Measurement("`reindex` without a server", _timed([program, "reindex", "--data", data]), runs, []))
    for waiting in _WAITING:
        measured.append(_reindex_while_searching(program, data, experiment, runs, waiting))
    return measured


def page(program: Path, runs: int, measured: list[Measurement]) -> str:
    lines = [
        "# Exports, imports and reindexing",
        "",
        "Written by `bench/moving.py`, see `bench/README.md`.",
        "",
        f"- {machine.version_of(program)}, in a data directory",
        f"- {machine.described()}",
        f"- {runs:,} runs, each with {_METRICS} metrics of {_POINTS} points, 5 params and 4 tags",
        "- The columns on the right have the median and the maximum, over six searches, of the ratio of a search's",
        "  median to its median on an idle server. The searches share the machine with the command and the server.",
        "",
        "| command | s | runs per second | searches: median | maximum |",
        "|---|---:|---:|---:|---:|",
        *(measurement.row() for measurement in measured),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the export, import and reindexing of runs.")
    parser.add_argument("--subject", type=Path, default=Path("target/optimized/mlflow-serverless"), help="path of the program")
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = parser.parse_args()
    program = options.subject.resolve()
    with tempfile.TemporaryDirectory(prefix="bench-moving-") as directory:
        measured = _measured(program, options.runs, Path(directory))
    text = page(program, options.runs, measured)
    if options.output:
        options.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
