r"""Measures lists of MCP servers, skills, issues and review queues, and adding traces to a queue, on
the local server and on MLflow 3.18.0.

  python -m bench.lists --subject target/release/mlflow-serverless --output docs/measured/lists.md
"""

import argparse
import json
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import bench.machine as machine
from bench.connection import Connection, for_each
from tests.support.next_release import next_release
from tests.support.servers import NextStockMlflow, ServerlessMlflow

_CONNECTIONS = 4
_ISSUES = 1_000
_QUEUES = 100
_TRACES = 100
_ROWS = 100
_WARM_UP = 3
_V2, _V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_TEXT = "Answers questions about orders, invoices and deliveries, and changes the address of an order. "
_DIGEST = "0123456789abcdef" * 4


class Server:
    """A server with the data. Its requests are sent over one connection."""

    def __init__(self, url: str):
        self._url = url

    def connect(self) -> None:
        """Opens a new connection, because servers close connections that nobody uses."""
        self._connection = Connection(self._url)

    def fill(self, entities: int) -> None:
        """Creates the data. A tenth of the servers and skills matches the filters."""
        for_each(self._url, range(entities), _create_server, _CONNECTIONS)
        for_each(self._url, range(entities), _create_skill, _CONNECTIONS)
        self.connect()
        self.experiment = self.post(f"{_V2}/experiments/create", {"name": "lists"})["experiment_id"]
        for_each(self._url, range(_ISSUES), lambda connection, number: _create_issue(connection, self.experiment, number), _CONNECTIONS)
        for_each(self._url, range(_TRACES), lambda connection, number: _create_trace(connection, self.experiment, number), _CONNECTIONS)
        self.connect()
        for number in range(_QUEUES):
            self.create_queue(f"queue {number}")

    def create_queue(self, name: str) -> str:
        queue = {"experiment_id": self.experiment, "name": name, "queue_type": "CUSTOM", "users": ["ann", "bob"]}
        return self.post(f"{_V3}/review-queues/create", queue)["review_queue"]["queue_id"]

    def get(self, path: str, query: dict[str, str] | None = None) -> dict:
        return json.loads(self._connection.get(f"{_V3}/{path}" + (f"?{urlencode(query)}" if query else "")))

    def post(self, path: str, body: dict) -> dict:
        return json.loads(_post(self._connection, path, body))


@dataclass
class Call:
    """A measured call. `prepare` is not measured, and its result is passed to `send`, which returns
    the list of the response.
    """

    name: str
    send: Callable[[Server, str], list]
    prepare: Callable[[Server], str] = lambda _: ""
    rows: int = _ROWS
    #: The medians of the rounds in ms, of each server.
    medians: dict[str, list[float]] = field(default_factory=dict)
    #: The processor time of our server in each round, in ms per call.
    cpu: list[float] = field(default_factory=list)

    def measure(self, name: str, server: Server, repetitions: int) -> None:
        """Sends the call repeatedly, and records the median."""
        seconds = []
        server.connect()
        for turn in range(_WARM_UP + repetitions):
            prepared = self.prepare(server)
            start = time.perf_counter()
            found = self.send(server, prepared)
            if turn >= _WARM_UP:
                seconds.append(time.perf_counter() - start)
            if len(found) != self.rows:
                raise RuntimeError(f"{self.name}: {len(found)} rows on {name}")
        self.medians.setdefault(name, []).append(1000 * statistics.median(seconds))

    def row(self) -> str:
        """Returns a row of the table."""
        ours, stock = (self.medians.get(name, []) for name in ("ours", "stock"))
        cells = [self.name, f"{min(ours):.1f}", "/".join(f"{median:.1f}" for median in ours), f"{min(self.cpu):.1f}"]
        cells += [f"{min(stock):.1f}", f"{min(stock) / min(ours):.1f}"] if stock else ["", ""]
        return f"| {' | '.join(cells)} |"


def calls() -> Iterator[Call]:
    """Yields the measured calls."""
    for kind, path, field in (("MCP servers", "mcp-servers", "mcp_servers"), ("skills", "skills", "skills")):
        for name, query in (
            (f"{_ROWS} {kind} in the default order", {}),
            (f"{_ROWS} {kind} by a filter", {"filter_string": "name LIKE '%7'"}),
            (f"the newest {_ROWS} {kind}", {"order_by": "created_at DESC"}),
        ):
            yield Call(name, _list(path, {"max_results": str(_ROWS), **query}, field))
    yield Call(f"{_ISSUES:,} issues", _search_issues({"max_results": _ISSUES}), rows=_ISSUES)
    yield Call(f"{_ISSUES:,} issues without texts", _search_issues({"max_results": _ISSUES, "view": "basic"}), rows=_ISSUES)
    by_severity = {"max_results": _ROWS, "include_trace_count": True, "order_by": ["severity DESC"]}
    yield Call(f"{_ROWS} of {_ISSUES:,} issues by severity, with the numbers of their traces", _search_issues(by_severity))
    yield Call(f"{_QUEUES} review queues", _list_queues, rows=_QUEUES)
    yield Call(f"adding {_TRACES} traces to a review queue", _add_traces, prepare=lambda server: server.create_queue(f"new {time.time_ns()}"), rows=_TRACES)


def _list(path: str, query: dict[str, str], field: str) -> Callable[[Server, str], list]:
    return lambda server, _: server.get(path, query)[field]


def _search_issues(query: dict) -> Callable[[Server, str], list]:
    return lambda server, _: server.post(f"{_V3}/issues/search", {"experiment_id": server.experiment, **query})["issues"]


def _list_queues(server: Server, _: str) -> list:
    query = {"experiment_id": server.experiment, "max_results": str(_QUEUES)}
    return server.get("review-queues/list", query)["review_queues"]


def _add_traces(server: Server, queue: str) -> list:
    return server.post(f"{_V3}/review-queues/items/add", {"queue_id": queue, "item_ids": _trace_ids()})["items"]


def _post(connection: Connection, path: str, body: dict) -> bytes:
    return connection.send(path, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _create_server(connection: Connection, number: int) -> None:
    document = {"name": f"com.example/server-{number:05}", "version": "1.0.0", "description": f"{_TEXT}{number}"}
    _post(connection, f"{_V3}/mcp-servers/com.example/server-{number:05}/versions", {"server_json": document, "status": "active"})


def _create_skill(connection: Connection, number: int) -> None:
    name = f"skill-{number:05}"
    _post(connection, f"{_V3}/skills", {"name": name, "description": f"{_TEXT}{number}"})
    source = {"source": "https://example.com/skills.git", "subpath": name, "digest": _DIGEST}
    _post(connection, f"{_V3}/skills/{name}/versions", source)


def _create_issue(connection: Connection, experiment: str, number: int) -> None:
    issue = {
        "experiment_id": experiment,
        "name": f"The agent calls a wrong tool in case {number}",
        "description": _TEXT * 4,
        "severity": ("low", "medium", "high")[number % 3],
        "categories": ["correctness"],
    }
    _post(connection, f"{_V3}/issues", issue)


def _create_trace(connection: Connection, experiment: str, number: int) -> None:
    info = {
        "trace_id": _trace_ids()[number],
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
        "request_time": "2025-01-01T00:00:00Z",
        "state": "OK",
    }
    _post(connection, f"{_V3}/traces", {"trace": {"trace_info": info}})


def _trace_ids() -> list[str]:
    return [f"tr-{number:032x}" for number in range(_TRACES)]


def page(options: argparse.Namespace, program: Path, measured: list[Call], notes: list[str]) -> str:
    """Returns the page: what was measured, the machine, and the table."""
    lines = [
        "# Lists of MCP servers, skills, issues and review queues",
        "",
        "Written by `bench/lists.py`, see `bench/README.md`. Times are in ms, from a request to the parsed response, by one",
        f"client with one connection. Each of {options.rounds} rounds sends every call {options.repetitions} times, to the servers in turn. The table contains the",
        "median of each round, and the lowest of these medians, because other programs used the machine during some rounds.",
        "The processor time is that of our server per call. A ratio above 1 means that stock MLflow takes longer.",
        "",
        f"- {options.entities:,} MCP servers and {options.entities:,} skills, each with a version and a description; {_ISSUES:,} issues with"
        f" descriptions of {len(_TEXT) * 4} characters; {_QUEUES} review queues",
        f"- ours: {machine.version_of(program)}, `serve` with the embedded engine, data on the same disk",
        f"- stock: MLflow 3.18.0, `mlflow server --workers 1`, SQLite {sqlite3.sqlite_version}, Python {platform.python_version()}",
        f"- {machine.described()}",
        *(f"- {note}" for note in notes),
        "",
        "| call | ours: lowest median | each round | processor time | stock: lowest median | ratio |",
        "|---|---:|---|---:|---:|---:|",
        *(call.row() for call in measured),
        "",
    ]
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description="Measure lists on the local server and on MLflow 3.18.0.")
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"path of a release build ({release})")
    arguments.add_argument("--entities", type=int, default=10_000, help="MCP servers, and skills (10000)")
    arguments.add_argument("--rounds", type=int, default=5, help="number of rounds (5)")
    arguments.add_argument("--repetitions", type=int, default=20, help="repetitions of each call in a round (20)")
    arguments.add_argument("--alone", action="store_true", help="skip stock MLflow, to compare builds")
    arguments.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = arguments.parse_args()
    if not options.subject.is_file():
        arguments.error(f"{options.subject} is missing: cargo build --release --package mlflow-serverless")
    return options


def main() -> int:
    """Fills the servers, measures, and writes the page."""
    options = _options()
    program = options.subject.resolve()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stops:
        started: dict[str, ServerlessMlflow | NextStockMlflow] = {"ours": ServerlessMlflow(Path(directory, "ours"), program=program)}
        stops.callback(started["ours"].stop)
        if not options.alone:
            started["stock"] = NextStockMlflow(Path(directory, "stock"), next_release())
            stops.callback(started["stock"].stop)
        servers = {name: Server(server.url) for name, server in started.items()}
        loading = []
        for name, server in servers.items():
            start = time.monotonic()
            server.fill(options.entities)
            loading.append(f"{time.monotonic() - start:.0f} s for {name}")
        notes = [f"loading over HTTP took {', and '.join(loading)}"]
        print(*notes, flush=True)
        measured = list(calls())
        for _ in range(options.rounds):
            for call in measured:
                for name, server in servers.items():
                    before = started["ours"].process.cpu_seconds()
                    call.measure(name, server, options.repetitions)
                    if name == "ours":
                        used = started["ours"].process.cpu_seconds() - before
                        call.cpu.append(1000 * used / (_WARM_UP + options.repetitions))
        text = page(options, program, measured, notes)
    if options.output:
        options.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
