r"""Measures searches among many runs, compared with stock MLflow on SQLite on the same machine.

  python -m bench.search --subject target/release/mlflow-serverless \
      --output docs/measured/search-benchmark.md

Both servers run at the same time and receive requests in turn. Their responses are compared before
the measurement.
"""

import argparse
import http.client
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bench.data as data
import bench.machine as machine
from bench.indexed import wait_until_indexed
from tests.support.http import Side
from tests.support.servers import ServerlessMlflow, StockMlflow, stock_database

_ROWS = 100
_WARM_UP = 5
_TIMEOUT_SECONDS = 300

#: The searches, by their names in the table.
SEARCHES: dict[str, dict[str, Any]] = {
    "latest 100": {},
    "metric above a value, best first": {
        "filter": "metrics.accuracy > 0.9",
        "order_by": ["metrics.accuracy DESC"],
    },
    "two params and a tag": {
        "filter": "params.optimizer = 'adam' AND params.depth = '3' AND tags.team = 'red'",
    },
    f"name with a word that {data.RARE_RUNS} runs have": {"filter": f"run_name LIKE '%{data.RARE_WORD}%'"},
    "status": {"filter": "status = 'FAILED'"},
}


class Client:
    """A connection to a server. A request is timed to the last byte of the response, which is
    parsed afterwards.
    """

    def __init__(self, side: Side):
        self._side = side
        self._connection = http.client.HTTPConnection(side.url.removeprefix("http://"), timeout=_TIMEOUT_SECONDS)
        self._experiment = data.experiment_id(side)

    def search(self, search: dict[str, Any]) -> tuple[float, bytes]:
        """Returns the seconds, and the body of the response."""
        body = json.dumps({"experiment_ids": [self._experiment], "max_results": _ROWS} | search)
        start = time.perf_counter()
        self._connection.request("POST", "/api/2.0/mlflow/runs/search", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - start
        if answer.status != 200:
            raise RuntimeError(f"{self._side.name}: {search} returned {answer.status}: {text[:300]!r}")
        return seconds, text

    def names(self, search: dict[str, Any]) -> list[str]:
        """Returns the names of the runs in the order of the response."""
        return [run["info"]["run_name"] for run in json.loads(self.search(search)[1]).get("runs", [])]


@dataclass(frozen=True)
class Measured:
    """A measured search: the number of runs on its page, and the times of each side in seconds."""

    name: str
    rows: int
    stock: list[float]
    subject: list[float]

    def row(self) -> str:
        """Returns a row of the table."""
        ratios = [_p50(self.stock) / _p50(self.subject), _p95(self.stock) / _p95(self.subject)]
        times = [_p50(self.stock), _p95(self.stock), _p50(self.subject), _p95(self.subject)]
        cells = [self.name, str(self.rows), *(f"{1000 * value:.1f}" for value in times)]
        return f"| {' | '.join(cells + [f'{ratio:.1f}' for ratio in ratios])} |"


def compare_answers(stock: Client, subject: Client) -> list[str]:
    """Describes differences between the names found by both sides."""
    reports = []
    for name, search in SEARCHES.items():
        expected, found = stock.names(search), subject.names(search)
        if expected != found:
            at = len(os.path.commonprefix([expected, found]))
            ways = f"{expected[at:at + 3]} and {found[at:at + 3]}"
            reports.append(f"{name}: {len(expected)} runs and {len(found)} runs, different from position {at}: {ways}")
        if not expected:
            reports.append(f"{name}: nothing is found, so there is nothing to measure")
    return reports


def measure(stock: Client, subject: Client, repetitions: int) -> list[Measured]:
    """Sends the searches to both sides in turn. Each side is first in every other turn."""
    measured = []
    for name, search in SEARCHES.items():
        seconds: dict[Client, list[float]] = {stock: [], subject: []}
        for turn in range(_WARM_UP + repetitions):
            for client in (stock, subject) if turn % 2 else (subject, stock):
                taken, _ = client.search(search)
                if turn >= _WARM_UP:
                    seconds[client].append(taken)
        measured.append(Measured(name, len(stock.names(search)), seconds[stock], seconds[subject]))
        print(measured[-1].row(), flush=True)
    return measured


def report(options: argparse.Namespace, measured: list[Measured], subject_version: str, notes: list[str]) -> str:
    """Returns the page: what was measured, the machine, and the table."""
    stock_version = f"MLflow {version('mlflow')}, `mlflow server --workers 1`"
    lines = [
        "# Searches compared with stock MLflow",
        "",
        "Written by `bench/search.py`, see `bench/README.md`. Times are in ms, from a request to the last byte of",
        "its response. One client with one connection uses both servers in turn. A ratio above 1 means that stock",
        "MLflow takes longer.",
        "",
        f"- {options.runs:,} runs in one experiment, each with 10 metrics, 5 params and 3 tags (seed {options.seed}); {_ROWS} per"
        " response at most",
        f"- {options.repetitions} repetitions of each search, after {_WARM_UP} for warming up; both servers return the same results",
        f"- stock: {stock_version}, SQLite {sqlite3.sqlite_version}, Python {platform.python_version()}",
        f"- ours: {subject_version}, `serve` with the embedded engine, data on the same disk",
        f"- {machine.described()}",
        *(f"- {note}" for note in notes),
        "",
        "| search | rows | stock p50 | stock p95 | ours p50 | ours p95 | ratio p50 | ratio p95 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(each.row() for each in measured),
        "",
    ]
    return "\n".join(lines)


def _p50(seconds: list[float]) -> float:
    return statistics.median(seconds)


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description="Measure searches compared with stock MLflow.")
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"path of a release build ({release})")
    arguments.add_argument("--runs", type=int, default=10_000, help="number of runs (10000)")
    arguments.add_argument("--repetitions", type=int, default=40, help="repetitions of each search, at least 30 (40)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = arguments.parse_args()
    if options.repetitions < 30:
        arguments.error("at least 30 repetitions are needed to measure the slowest 5 percent")
    if not options.subject.is_file():
        arguments.error(f"{options.subject} is missing: cargo build --release --package mlflow-serverless")
    return options


def main() -> int:
    """Loads, waits for the index, compares, measures, and writes the page. Returns 1 if the
    responses differ.
    """
    options = _options()
    program = options.subject.resolve()
    made = list(data.runs(options.runs, options.seed))
    servers: list[StockMlflow | ServerlessMlflow] = []
    with tempfile.TemporaryDirectory() as directory:
        stock_directory = Path(directory, "stock")
        try:
            servers.append(ServerlessMlflow(Path(directory, "subject"), program=program))
            subject_side = Side("ours", servers[0].url)
            notes = [f"loading took {_timed(data.load_by_http, subject_side, made):.0f} s for ours, over HTTP"]
            stock_directory.mkdir()
            taken = _timed(data.load_into_stock, stock_database(stock_directory), made)
            notes[0] += f", and {taken:.0f} s for stock MLflow, by its own store without HTTP"
            servers.append(StockMlflow(stock_directory))
            waited = wait_until_indexed(Path(directory, "subject", "data"))
            notes.append(f"the index was up to date {waited:.0f} s later")
            print(*notes, sep="\n", flush=True)
            stock, subject = Client(Side("stock", servers[1].url)), Client(subject_side)
            if reports := compare_answers(stock, subject):
                print(f"the responses differ with seed {options.seed}:", *reports, sep="\n")
                return 1
            text = report(options, measure(stock, subject, options.repetitions), machine.version_of(program), notes)
        finally:
            for server in servers:
                server.stop()
    if options.output:
        options.output.write_text(text)
    else:
        print(text)
    return 0


def _timed(work, *arguments: Any) -> float:
    start = time.monotonic()
    work(*arguments)
    return time.monotonic() - start


if __name__ == "__main__":
    sys.exit(main())
