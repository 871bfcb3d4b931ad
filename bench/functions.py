"""Measures the CPU time of cold starts and calls of the functions, with release builds in the
tests' local Lambda.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from samtranslator.yaml_helper import yaml_parse

from bench.connection import Connection
from bench.data import experiment_id, load_by_http, runs
from bench.indexed import wait_until_indexed
from bench.machine import described, version_of
from bench.sandbox import Sandbox, Start, computed_ms, program_file
from tests.support.engine import Engine, start_engine
from tests.support.gateway import Gateway, Limits, read_routes
from tests.support.http import Side
from tests.support.http_server import Received, serving
from tests.support.invoke_api import invoking
from tests.support.servers import ServerlessMlflow, binary
from tests.support.tls import make_certificate, tls_before

_REPOSITORY = Path(__file__).resolve().parents[1]
_PASSWORD = "correct horse battery"
_STARTS = 20
#: Number of calls of each kind before the measurement, and during it.
_WARM, _CALLS = 20, 100
_SEED = 1

#: A request that reads the table, for each function with routes. Artifacts and pages do not read
#: it.
_FIRST = {
    "tracking": ("GET", "/api/2.0/mlflow/experiments/get?experiment_id=0"),
    "evaluation": ("GET", "/api/3.0/mlflow/datasets/d-00000000000000000000000000000000"),
    "registry": ("GET", "/api/2.0/mlflow/registered-models/get?name=m"),
    "traces": ("GET", "/api/3.0/mlflow/traces/tr-00000000000000000000000000000000"),
}


@dataclass(frozen=True)
class Function:
    """The measurements of a function."""

    name: str
    starts: list[Start]
    #: CPU times of a first request over plain HTTP, of a first one over TLS, and of a second one.
    #: `None` if the function has no such request.
    first: tuple[float, float, float] | None
    zip_mb: float


class World:
    """An engine with an experiment of many runs, and the functions' settings for it."""

    def __init__(self, directory: Path, programs: Path, count: int):
        self.directory, self.programs = directory, programs
        self.data = directory / "data"
        routes = read_routes(yaml_parse((_REPOSITORY / "template.yaml").read_text()))
        self._gateway = lambda functions: Gateway(routes, functions, Limits(seconds=300))
        engine = self.engine("filled")
        try:
            settings = self.settings(engine)
            with Sandbox(programs / "tracking", directory, settings) as tracking:
                with serving(self._gateway({"tracking": tracking}).answer) as url:
                    side = Side("ours", url)
                    load_by_http(side, list(runs(count, _SEED)))
                    self.experiment = experiment_id(side)
        finally:
            engine.process.stop()
        self.index_ms = self._index() / count

    def engine(self, name: str, *options: str) -> Engine:
        """Starts an engine on the data, with its own log."""
        (self.directory / name).mkdir()
        return start_engine(self.directory / name, self.data, *options)

    def settings(self, engine: Engine, **more: str) -> dict[str, str]:
        return {
            "DYNAMODB_ENDPOINT": engine.url,
            "ACCESS_MODE": "none",
            "TABLE_NAME": "mlflow",
            "ARTIFACT_ROOT": "s3://bucket/root",
            "AWS_ACCESS_KEY_ID": engine.access_key,
            "AWS_SECRET_ACCESS_KEY": engine.secret,
            "AWS_REGION": "local",
            "UI_DIRECTORY": str(self.directory),
            **more,
        }

    def gateway(self, functions: Mapping[str, Sandbox]) -> Gateway:
        return self._gateway(functions)

    def _index(self) -> float:
        """Returns the CPU time of the indexer for indexing all runs, which have all ended."""
        functions: dict[str, Sandbox] = {}
        with ExitStack() as stops:
            url = stops.enter_context(serving(invoking(functions)))
            engine = self.engine("indexed", "--indexer-url", url)
            stops.callback(engine.process.stop)
            functions["fts-indexer"] = stops.enter_context(
                Sandbox(self.programs / "fts-indexer", self.directory, self.settings(engine))
            )
            before = computed_ms(functions["fts-indexer"].process.pid)
            wait_until_indexed(self.data)
            return computed_ms(functions["fts-indexer"].process.pid) - before


class Caller:
    """A client that calls the tracking function through the gateway."""

    def __init__(self, gateway: Gateway, tracking: Sandbox, experiment: str, prefix: str, headers: list[tuple[str, str]]):
        self._gateway, self._tracking, self._prefix, self._headers = gateway, tracking, prefix, headers
        self._experiment = experiment

    def send(self, method: str, path: str, body: dict | None = None) -> dict:
        """Sends a request that must succeed."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = [("Host", "x.example.com"), ("Content-Type", "application/json"), ("Accept-Encoding", "gzip"), *self._headers]
        status, _, answer = self._gateway.answer(Received(method, f"{self._prefix}/2.0/mlflow/{path}", headers, content))
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer[:300]!r}")
        return {} if answer[:1] == b"\x1f" else json.loads(answer)

    def measure(self, call: Callable[[int], object]) -> float:
        """Returns the median CPU time of a warm call."""
        taken = []
        for number in range(_WARM + _CALLS):
            call(number)
            taken.append(self._tracking.last_cpu_ms)
        return statistics.median(taken[_WARM:])

    def all(self) -> dict[str, float]:
        """Returns the CPU time of each kind of call."""
        found = self.send("POST", "runs/search", {"experiment_ids": [self._experiment], "max_results": 1})["runs"][0]
        read = found["info"]["run_id"]
        # In a different experiment, because no indexer is running: searches would read each of
        # these runs individually.
        created = self.send("POST", "experiments/create", {"name": f"created by {self._prefix}"})["experiment_id"]
        own, long = (
            self.send("POST", "runs/create", {"experiment_id": created, "run_name": name})["run"]["info"]["run_id"] for name in ("own", "long")
        )

        def points(key: str, count: int, start: int) -> list[dict]:
            return [{"key": key, "value": step / 7, "timestamp": 1_750_000_000_000 + step, "step": step} for step in range(start, start + count)]

        def batch(run: str, metrics: list[dict]) -> dict:
            return self.send("POST", "runs/log-batch", {"run_id": run, "metrics": metrics, "params": [], "tags": []})

        def search(most: int, **more: object) -> Callable[[int], dict]:
            body = {"experiment_ids": [self._experiment], "max_results": most, **more}
            return lambda _: self.send("POST", "runs/search", body)

        batch(long, points("history", 1_000, 0))
        by_metric = {"filter": "metrics.accuracy > 0.5", "order_by": ["metrics.accuracy DESC"]}
        history = urlencode({"run_id": long, "metric_key": "history"})
        ten = [f"metric_{number}" for number in range(10)]
        return {
            "get run, 10 metrics": self.measure(lambda _: self.send("GET", f"runs/get?run_id={read}")),
            "latest 100 runs": self.measure(search(100)),
            "latest 1,000 runs": self.measure(search(1_000)),
            "filter and order by a metric, 1 run": self.measure(search(1, **by_metric)),
            "filter and order by a metric, 100 runs": self.measure(search(100, **by_metric)),
            "history of 1,000 points": self.measure(lambda _: self.send("GET", f"metrics/get-history?{history}")),
            "log-metric": self.measure(lambda step: self.send("POST", "runs/log-metric", {"run_id": own, **points("loss", 1, step)[0]})),
            "log-batch of 10 metrics": self.measure(lambda step: batch(own, [point for key in ten for point in points(key, 1, step)])),
            "log-batch of 1,000 points": self.measure(lambda step: batch(long, points("many", 1_000, step * 1_000))),
            "create run": self.measure(
                lambda number: self.send("POST", "runs/create", {"experiment_id": created, "run_name": f"new {number}"})
            ),
        }


def _function(world: World, engine: Engine, secure: Mapping[str, str], name: str) -> Function:
    program, settings = world.programs / name, world.settings(engine)
    starts = []
    for _ in range(_STARTS):
        with Sandbox(program, world.directory, settings) as sandbox:
            starts.append(sandbox.start)
    first = None
    if name in _FIRST:
        taken = [_first_requests(world, program, name, {**settings, **more}) for more in ({}, secure) for _ in range(5)]
        plain, tls = taken[:5], taken[5:]
        first = (
            statistics.median(first for first, _ in plain),
            statistics.median(first for first, _ in tls),
            statistics.median(second for _, second in taken),
        )
    return Function(name, starts, first, _zip_mb(program))


def _first_requests(world: World, program: Path, name: str, settings: Mapping[str, str]) -> tuple[float, float]:
    """Returns the CPU times of the first and the second request of a process."""
    method, target = _FIRST[name]
    with Sandbox(program, world.directory, settings) as sandbox:
        gateway = world.gateway({name: sandbox})
        taken = []
        for _ in range(2):
            status, _, answer = gateway.answer(Received(method, target, [("Host", "x.example.com")]))
            if status not in (200, 404):
                raise RuntimeError(f"{target}: {status} {answer!r}\n{sandbox.process.log_tail()}")
            taken.append(sandbox.last_cpu_ms)
    return taken[0], taken[1]


def _zip_mb(program: Path) -> float:
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            packed.write(program_file(program), "bootstrap")
        return file.seek(0, 2) / 2**20


def _calls(world: World, engine: Engine) -> tuple[dict[str, float], float]:
    """Measures calls of a caller that is authorized by IAM. Also returns the peak memory of the
    process.
    """
    with Sandbox(world.programs / "tracking", world.directory, world.settings(engine)) as tracking:
        measured = Caller(world.gateway({"tracking": tracking}), tracking, world.experiment, "/api", []).all()
        return measured, tracking.process.peak_kb() / 1024


def _calls_of_a_user(world: World, engine: Engine) -> dict[str, float]:
    """Measures calls of a user with a session."""
    settings = world.settings(engine, ACCESS_MODE="basic", DEFAULT_PERMISSION="EDIT", ACCESS_TABLE_NAME="mlflow-access")
    place = ["--dynamodb-endpoint", engine.url, "--table", "mlflow", "--access-table", "mlflow-access"]
    command = [str(binary()), "admin", "create", "admin", *place]
    subprocess.run(command, input=f"{_PASSWORD}\n", text=True, check=True, capture_output=True, timeout=120, env=settings)
    with ExitStack() as stops:
        functions = {name: stops.enter_context(Sandbox(world.programs / name, world.directory, settings)) for name in ("tracking", "auth")}
        gateway = world.gateway(functions)
        host = ("Host", "x.example.com")
        form = [host, ("Content-Type", "application/x-www-form-urlencoded"), ("Origin", "https://x.example.com")]
        body = urlencode({"username": "admin", "password": _PASSWORD}).encode()
        status, headers, answer = gateway.answer(Received("POST", "/signin", form, body))
        if status != 303:
            raise RuntimeError(f"{status} {answer[:300]!r}")
        cookie = "; ".join(value.partition(";")[0] for name, value in headers if name.lower() == "set-cookie")
        own = [("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")]
        return Caller(gateway, functions["tracking"], world.experiment, "/ajax-api", own).all()


def _page_of_serve(world: World) -> float:
    """Returns the CPU time of a page of 100 runs in the local server, including the engine."""
    server = ServerlessMlflow(world.directory, program=binary())
    try:
        connection = Connection(server.url)
        body = {"experiment_ids": [world.experiment], "max_results": 100}
        taken = []
        for _ in range(_WARM + _CALLS):
            before = computed_ms(server.process.pid)
            connection.post("runs/search", body)
            taken.append(computed_ms(server.process.pid) - before)
        return statistics.median(taken[_WARM:])
    finally:
        server.stop()


def _yardstick_s() -> float:
    """Returns the median time of five repetitions of a fixed computation, which indicates the speed
    of the processor during the measurement.
    """

    def squares() -> float:
        begun = time.process_time()
        sum(number * number for number in range(10_000_000))
        return time.process_time() - begun

    return statistics.median(squares() for _ in range(5))


def _median(starts: list[Start], of: str) -> float:
    return statistics.median(getattr(start, of) for start in starts)


def _page(count: int, functions: list[Function], calls: dict[str, float], users: dict[str, float], index_ms: float, memory: float, served: float | None, yardstick: float) -> str:
    lines = [
        "# Start-up and processor time of the functions",
        "",
        "Written by `bench/functions.py`, see `bench/README.md`. Times are the **processor time of the",
        "function's process** in ms, unless stated otherwise. They depend on the processor and on other machines",
        "that share it, so compare them by the reference below.",
        "",
        f"- {version_of(binary())}, release builds. Each function has a process of its own, as in Lambda. The",
        "  tests' runtime API sends it one event at a time.",
        "- The table is the embedded engine in another process, over HTTP. The engine's processor time is not",
        "  included.",
        f"- {described()}",
        f"- Reference: Python {sys.version_info.major}.{sys.version_info.minor} adds ten million squares in {yardstick:.2f} s of processor time.",
        "",
        "## Start-up",
        "",
        f"A start ends when the process requests its first event. Figures are the median of {_STARTS} starts. The first",
        "request reads one item, over plain HTTP and over TLS with a self-signed certificate. The second request is",
        "a warm one. Functions connect during their start, so these columns include no handshake. The zip contains",
        "only the program.",
        "",
        "| function | start, wall-clock | start | first request | over TLS | second request | memory, MB | zip, MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in functions:
        first = ["", "", ""] if one.first is None else [f"{value:.2f}" for value in one.first]
        figures = [f"{_median(one.starts, 'ms'):.1f}", f"{_median(one.starts, 'cpu_ms'):.1f}", *first]
        lines.append(f"| {one.name} | {' | '.join(figures)} | {_median(one.starts, 'mb'):.0f} | {one.zip_mb:.1f} |")
    lines += [
        "",
        "## Warm calls",
        "",
        f"The median of {_CALLS} calls after {_WARM}, by the tracking function. The experiment has {count:,} runs with",
        "10 metrics, 5 params and 3 tags each, all indexed. A **session** is that of a signed-in user.",
        f"Without users, the process used at most {memory:.0f} MB of memory.",
        "",
        "| call | without users | with a session |",
        "|---|---:|---:|",
    ]
    lines += [f"| {call} | {taken:.2f} | {users[call]:.2f} |" for call, taken in calls.items()]
    lines += [
        "",
        f"Indexing one of these runs takes {index_ms:.2f} ms of the indexer's processor time.",
        "",
    ]
    if served is not None:
        lines += [f"In `serve`, a page of 100 runs takes {served:.2f} ms: engine, HTTP and server in one process.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=_REPOSITORY / "target/release", help="directory of the programs: files, or the directories that `make release` creates in target/for-release")
    parser.add_argument("--runs", type=int, default=1_500, help="number of runs in the experiment")
    parser.add_argument("--output", type=Path, help="path of the page; printed by default")
    parser.add_argument("--no-serve", action="store_true", help="skip the page of runs from `serve`, which requires a release build of the program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        world = World(directory, options.programs.resolve(), options.runs)
        engine = world.engine("measured")
        try:
            certificate, key = make_certificate(directory)
            with tls_before(engine.url, certificate, key) as endpoint:
                secure = {"DYNAMODB_ENDPOINT": endpoint, "SSL_CERT_FILE": str(certificate)}
                crates = sorted(crate.parent.name for crate in _REPOSITORY.glob("functions/*/Cargo.toml"))
                functions = [_function(world, engine, secure, crate) for crate in crates]
            calls, memory = _calls(world, engine)
            users = _calls_of_a_user(world, engine)
        finally:
            engine.process.stop()
        page = _page(options.runs, functions, calls, users, world.index_ms, memory, None if options.no_serve else _page_of_serve(world), _yardstick_s())
    page = re.sub(r"\n+\Z", "\n", page)
    if options.output:
        options.output.write_text(page)
    else:
        sys.stdout.write(page)


if __name__ == "__main__":
    main()
