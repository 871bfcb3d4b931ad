r"""Measures the local server: its throughput compared with stock MLflow on SQLite, and the effects
of a large load.

  python -m bench.local --subject target/release/mlflow-serverless \
      --output docs/measured/local-benchmark.md
"""

import argparse
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import bench.data as data
import bench.load as load
import bench.machine as machine
import bench.throughput as throughput
from tests.support.servers import ServerlessMlflow, StockMlflow

_CEILING_SECONDS = 3
_HALVES = "median / slowest, in ms"


def logging_page(measured: list[throughput.Throughput], ceilings: list[float]) -> list[str]:
    """Returns the section about logging."""
    return [
        "## Logging",
        "",
        f"Calls per second over {throughput.CONNECTIONS} connections, each of which logs to a run of its own: the median of the rounds, and each",
        "round. A server receives no requests while the other is measured. The client alone makes "
        + " and ".join(f"{ceiling:,.0f}" for ceiling in ceilings)
        + " calls of `/health` per second (stock, ours).",
        "",
        "| call | stock | ours | ratio | stock, each | ours, each | load average |",
        "|---|---:|---:|---:|---|---|---:|",
        *(each.row() for each in measured),
        "",
    ]


def load_page(measured: load.Load, memory_kb: tuple[int, int]) -> list[str]:
    """Returns the section about the load."""
    a_run = measured.disk / measured.runs
    used = (measured.disk - measured.free) / measured.runs
    return [
        "## Many runs",
        "",
        f"{measured.runs:,} runs are logged to one experiment of our server by {throughput.CONNECTIONS} clients: create, one batch of 10 metrics and 5 params, end.",
        "",
        f"- {measured.seconds:.0f} s, {measured.runs / measured.seconds:.0f} runs per second (load average {measured.loadavg:.1f}); the index was up to date"
        f" {measured.indexed_after:.1f} s later",
        f"- {1000 * measured.cpu / measured.runs:.1f} ms of the server's processor time per run, including the index and searches",
        f"- {a_run / 1000:.1f} KB per run on disk, {used / 1000:.1f} KB without free pages; in addition {measured.log / 1e6:.1f} MB for SQLite's log",
        f"- {memory_kb[0] / 1024:.0f} MB of memory at the end, at most {memory_kb[1] / 1024:.0f} MB",
        "",
        f"| search, 100 rows ({_HALVES}) | during | right after | settled |",
        "|---|---:|---:|---:|",
        *measured.rows(),
        "",
    ]


def head(options: argparse.Namespace, program: Path) -> list[str]:
    """Describes what was measured, and the machine."""
    stock = f"MLflow {version('mlflow')}, `mlflow server --workers 1`, SQLite {sqlite3.sqlite_version}"
    return [
        "# Local server compared with stock MLflow",
        "",
        "Written by `bench/local.py`, see `bench/README.md`.",
        "",
        f"- ours: {machine.version_of(program)}, `serve` with the embedded engine",
        f"- stock: {stock}, Python {platform.python_version()}",
        f"- both, and the client, on one machine and disk: {machine.described()}",
        f"- {options.rounds} rounds of {options.seconds:.0f} s each (seed {options.seed})",
        "",
    ]


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description="Measure the local server compared with stock MLflow.")
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"path of a release build ({release})")
    arguments.add_argument("--runs", type=int, default=20_000, help="runs to load; 0 skips it (20000)")
    arguments.add_argument("--rounds", type=int, default=3, help="rounds of logging to each side; 0 skips it (3)")
    arguments.add_argument("--seconds", type=float, default=8, help="duration of each round (8)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--alone", action="store_true", help="skip stock MLflow, to compare builds")
    arguments.add_argument("--keep", type=Path, help="directory for the data, which is kept")
    arguments.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = arguments.parse_args()
    if not options.subject.is_file():
        arguments.error(f"{options.subject} is missing: cargo build --release --package mlflow-serverless")
    return options


def _logging(options: argparse.Namespace, stops: ExitStack, directory: Path, subject: ServerlessMlflow) -> list[str]:
    if options.alone:
        rates = throughput.alone(subject.url, options.rounds, options.seconds)
        return [f"{name}: {statistics.median(each):,.0f} of {each}" for name, each in rates.items()]
    stock = StockMlflow(directory / "stock")
    stops.callback(stock.stop)
    ceilings = [throughput.ceiling(server.url, _CEILING_SECONDS) for server in (stock, subject)]
    return logging_page(throughput.measure(stock.url, subject.url, options.rounds, options.seconds), ceilings)


def main() -> int:
    """Starts the servers, measures, and writes the page."""
    options = _options()
    program = options.subject.resolve()
    lines = head(options, program)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stops:
        directory = options.keep or Path(temporary)
        if options.rounds:
            with ExitStack() as both:
                subject = ServerlessMlflow(directory / "logging", program=program)
                both.callback(subject.stop)
                lines += _logging(options, both, directory, subject)
        if options.runs:
            subject = ServerlessMlflow(directory / "load", program=program)
            stops.callback(subject.stop)
            made = list(data.runs(options.runs, options.seed))
            measured = load.measure(subject.url, directory / "load/data", subject.process.pid, made)
            lines += load_page(measured, (_memory_kb(subject, "VmRSS"), _memory_kb(subject, "VmHWM")))
    text = "\n".join(lines)
    if options.output:
        options.output.write_text(text)
    print(text, f"load average {os.getloadavg()[0]:.1f}", sep="\n")
    return 0


def _memory_kb(server: ServerlessMlflow, name: str) -> int:
    [line] = [line for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1])


if __name__ == "__main__":
    sys.exit(main())
