"""Measures searches of very many runs while new ones arrive, restarts, and commands on their file.

  .venv/bin/python -m bench.many --output docs/measured/many-runs.md  # a million runs, some hours
  .venv/bin/python -m bench.many --runs 3000 --few 1000 --removed 300 --repetitions 5  # quick check

Without `--output`, the page is printed. Everything is also measured with an experiment of `--few`
runs on a separate server: the number of requests that a search makes to the table must be the same.
"""

import argparse
import json
import multiprocessing
import os
import pty
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import bench.data as data
import bench.load as load
import bench.machine as machine
import bench.search as search
from bench.connection import Connection, for_each
from bench.indexed import wait_until_indexed
from bench.load import send_run
from bench.throughput import CONNECTIONS
from tests.support.servers import ServerlessMlflow
from tools.cost.lines import read

#: The searches, by their names in the tables.
SEARCHES = {
    **search.SEARCHES,
    "two params": {"filter": "params.optimizer = 'adam' AND params.depth = '3'"},
    **{name: asked for name, asked in load.SEARCHES.items() if name not in search.SEARCHES},
}
_ROWS = 100
#: Number of repetitions of each search, enough to measure the slowest percent.
_REPETITIONS = 100
_ARRIVING_A_SECOND = 20
_SEED = 1
#: Offset of the start times of runs that arrive later. Start times in `data` are all different, and
#: these are later than all of them.
_LATER = 100_000_000
_TOLD = {"RUST_LOG": "warn,request=info"}

#: Seconds of each search, by its name.
Times = dict[str, list[float]]


@dataclass
class Command:
    """Duration and memory of a command on the file, and the times of concurrent searches."""

    seconds: float = 0
    #: Memory of the command and of the server in MB, once per second.
    memory: list[float] = field(default_factory=list)
    server_memory: list[float] = field(default_factory=list)
    #: Last state of the progress bar: position and total.
    progress: tuple[int, int] | None = None
    meanwhile: Times = field(default_factory=dict)


@dataclass
class Measured:
    """The measurements of an experiment."""

    runs: int
    #: `None` if the data was created in another way, so that loading was not measured.
    loading: float | None = None
    indexed_after: float | None = None
    disk: int = 0
    memory: float = 0
    settled: Times = field(default_factory=dict)
    requests: dict[str, float] = field(default_factory=dict)
    arriving: Times = field(default_factory=dict)
    requests_arriving: dict[str, float] = field(default_factory=dict)
    #: Number of runs per second that arrived during the searches.
    arrived: float = 0
    start_after_stop: float = 0
    start_after_kill: float = 0
    #: Without other activity, just before the commands.
    before: Times = field(default_factory=dict)
    gc: Command | None = None
    reindex: Command | None = None


class Server:
    """`serve` on the data of an experiment. With `tells`, it logs a line for each request."""

    def __init__(self, program: Path, directory: Path, tells: bool = True):
        start = time.monotonic()
        environment = _TOLD if tells else {}
        self._server = ServerlessMlflow(directory, program=program, environment=environment, artifact_root="mlflow-artifacts:/")
        self.url = self._server.url
        self.connection = Connection(self.url)
        self.connection.post("experiments/search", {"max_results": 1})
        #: Seconds from the start of the program to its first response.
        self.start = time.monotonic() - start
        self.kill = self._server.kill
        self.pid = self._server.process.pid

    def stop(self) -> None:
        """Stops the server cleanly, however long it takes."""
        self._server.process.stop(patience=600)

    def experiment(self) -> str:
        asked = {"filter": f"name = '{data.EXPERIMENT}'", "max_results": 1}
        return json.loads(self.connection.post("experiments/search", asked))["experiments"][0]["experiment_id"]

    def requests_of(self, search_: Callable[[], bytes]) -> float:
        """Returns the number of requests that a search makes to the table, from its log line."""
        before, told = len(self._server.process.log_text()), []
        search_()
        while not told:
            text = self._server.process.log_text()[before:]
            told = [line for line in read(text) if "runs/search" in line.route]
        return told[0].requests


def measure(program: Path, directory: Path, runs: int, removed: int, repetitions: int, longest: float) -> Measured:
    """Loads the runs, searches, restarts, and runs both commands for at most `longest` seconds
    each. Uses existing data of an earlier call.
    """
    measured, loaded = Measured(runs), directory / "loaded"
    if not loaded.exists():
        loaded.write_text(json.dumps(_load(program, directory, runs)))
    measured.loading, measured.indexed_after = json.loads(loaded.read_text())
    measured.disk = load.sizes(directory / "data")[0]
    _say(f"{runs:,} runs are loaded")
    server = Server(program, directory)
    experiment = server.experiment()
    measured.start_after_stop = server.start
    measured.settled = probe(server, experiment, repetitions)
    measured.requests = requests_of(server, experiment)
    with arriving(server.url, experiment) as counted:
        measured.arriving = probe(server, experiment, repetitions)
        measured.requests_arriving = requests_of(server, experiment)
        measured.memory = memory(server.pid)
        measured.arrived = counted()
        server.kill()
    _say("killed while runs arrived")
    server = Server(program, directory)
    measured.start_after_kill = server.start
    wait_until_indexed(directory / "data")
    if removed:
        measured.before = probe(server, experiment, 20)
        _delete(server.url, experiment, removed)
        wait_until_indexed(directory / "data")
        measured.gc = command(program, directory, server, experiment, "gc", longest)
        measured.reindex = command(program, directory, server, experiment, "reindex", longest)
    server.stop()
    return measured


def _load(program: Path, directory: Path, runs: int) -> tuple[float, float]:
    """Loads the runs. Returns the seconds for loading and for indexing."""
    server = Server(program, directory, tells=False)
    made = server.connection.post("experiments/create", {"name": data.EXPERIMENT})
    experiment = json.loads(made)["experiment_id"]
    start = time.monotonic()
    # In a separate process, so that it does not wait for the interpreter lock of the measuring
    # process.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as sender:
        sender.submit(_send, server.url, experiment, runs).result()
    loading = time.monotonic() - start
    indexed_after = wait_until_indexed(directory / "data", patience=4 * 3600)
    server.stop()
    return loading, indexed_after


def _send(url: str, experiment: str, count: int) -> None:
    """Sends the runs over several connections concurrently."""
    for_each(url, data.runs(count, _SEED), lambda connection, run: send_run(connection, experiment, run, with_tags=True), CONNECTIONS)


@contextmanager
def arriving(url: str, experiment: str) -> Iterator[Callable[[], float]]:
    """Adds twenty runs per second until the context ends or the server is gone. Yields a function
    that returns the number of runs per second so far.
    """
    context = multiprocessing.get_context("spawn")
    ended, count = context.Event(), context.Value("i", 0)
    sender = context.Process(target=_arrive, args=(url, experiment, ended, count))
    sender.start()
    # Waits until the first of them are being indexed.
    time.sleep(10)
    before, begin = count.value, time.monotonic()
    try:
        yield lambda: (count.value - before) / (time.monotonic() - begin)
    finally:
        ended.set()
        sender.join()
    if sender.exitcode:
        raise RuntimeError(f"the client that adds runs exited with {sender.exitcode}")


def _arrive(url: str, experiment: str, ended, count) -> None:
    connection, begin = Connection(url), time.monotonic()
    for number, run in enumerate(data.runs(1_000_000, _SEED + 1)):
        time.sleep(max(0.0, begin + number / _ARRIVING_A_SECOND - time.monotonic()))
        if ended.is_set():
            return
        later = {"start_time": run.start_time + _LATER * 1000, "end_time": run.end_time + _LATER * 1000}
        try:
            send_run(connection, experiment, replace(run, **later), with_tags=True)
        except OSError:
            # The server was killed.
            return
        count.value = number + 1


def probe(server: Server, experiment: str, repetitions: int) -> Times:
    """Sends each search in turn, repeatedly, over one connection."""
    times: Times = {name: [] for name in SEARCHES}
    for turn in range(repetitions + 5):
        for name, asked in SEARCHES.items():
            start = time.perf_counter()
            _ask(server, experiment, asked)
            if turn >= 5:
                times[name].append(time.perf_counter() - start)
    return times


def requests_of(server: Server, experiment: str) -> dict[str, float]:
    """Returns the number of requests that each search makes to the table."""
    return {name: server.requests_of(partial(_ask, server, experiment, asked)) for name, asked in SEARCHES.items()}


def _ask(server: Server, experiment: str, asked: dict) -> bytes:
    return server.connection.post("runs/search", {"experiment_ids": [experiment], "max_results": _ROWS} | asked)


def _delete(url: str, experiment: str, count: int) -> None:
    """Deletes the oldest runs with a client's requests."""
    connection, after, ids = Connection(url), None, []
    while len(ids) < count:
        asked = {"experiment_ids": [experiment], "max_results": min(5_000, count - len(ids)), "order_by": ["start_time ASC"]}
        found = json.loads(connection.post("runs/search", asked | ({"page_token": after} if after else {})))
        ids += [run["info"]["run_id"] for run in found.get("runs", [])]
        after = found.get("next_page_token")
        if not after:
            break
    # Each call waits 300 ms, until all leases on the run have expired.
    for_each(url, ids, lambda own, run: own.post("runs/delete", {"run_id": run}), 16 * CONNECTIONS)


def command(program: Path, directory: Path, server: Server, experiment: str, name: str, longest: float) -> Command:
    """Runs a command on the file for at most `longest` seconds, with concurrent searches on the
    running server.
    """
    ran, start = Command(meanwhile={name: [] for name in SEARCHES}), time.monotonic()
    place = ["--data", str(directory / "data")]
    # A pseudo terminal, because the progress bar is only shown on a terminal.
    terminal, output = pty.openpty()
    process = subprocess.Popen([program, name, *place], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    os.close(output)
    told: list[bytes] = []
    reading = threading.Thread(target=lambda: told.extend(_read(terminal)))
    reading.start()
    ended: list[float] = []
    waiting = threading.Thread(target=lambda: (process.wait(), ended.append(time.monotonic())))
    waiting.start()
    is_cut_off = False
    while not ended:
        ran.memory.append(memory(process.pid))
        ran.server_memory.append(memory(server.pid))
        for asked, times in probe_once(server, experiment).items():
            ran.meanwhile[asked] += times
        if time.monotonic() - start > longest and not is_cut_off:
            is_cut_off = True
            process.send_signal(signal.SIGTERM)
        waiting.join(1)
    reading.join()
    text = b"".join(told).decode(errors="replace")
    if process.returncode and not is_cut_off:
        raise RuntimeError(f"{name} exited with {process.returncode}: {text[-1000:]}")
    ran.seconds = ended[0] - start
    bars = re.findall(r"(\d+)/(\d+) ", text)
    ran.progress = (int(bars[-1][0]), int(bars[-1][1])) if bars else None
    _say(f"{name} took {ran.seconds:.0f} s, its bar came to {ran.progress}")
    return ran


def _read(terminal: int) -> Iterator[bytes]:
    """Yields the output of a process until it ends."""
    while True:
        try:
            yield os.read(terminal, 1 << 16)
        except OSError:
            # The process has closed the other end.
            os.close(terminal)
            return


def probe_once(server: Server, experiment: str) -> Times:
    """Sends each search once."""
    times: Times = {}
    for name, asked in SEARCHES.items():
        start = time.perf_counter()
        _ask(server, experiment, asked)
        times[name] = [time.perf_counter() - start]
    return times


def memory(pid: int) -> float:
    """Returns the memory of a process in MB, or 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def page(program: Path, few: Measured, many: Measured, options: argparse.Namespace) -> str:
    """Returns the page."""
    return "\n".join([
        "# Large experiments",
        "",
        "Written by `bench/many.py`, see `bench/README.md`. Times are in ms, from a request to the last",
        "byte of its response, over one connection.",
        "",
        f"- {machine.version_of(program)}, `serve` with the embedded engine",
        f"- {machine.described()}",
        f"- Each run has 10 metrics, 5 params and 3 tags. A response has {_ROWS} runs at most.",
        f"- Each search was made {options.repetitions} times, after 5 for warming up.",
        *(_loaded(measured) for measured in (few, many)),
        "",
        "## Searches",
        "",
        f"While runs **arrive**, a client creates {many.arrived:.0f} runs per second ({few.arrived:.0f} in the smaller experiment), logs to each,",
        "and ends it. The client shares the machine with the server.",
        "",
        f"| search | {few.runs:,} runs: median | p99 | requests | {many.runs:,} runs: median | p99 | requests |"
        " arriving: median | p99 | requests |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(_row(name, few, many) for name in SEARCHES),
        "",
        "## Start-up",
        "",
        "Times are from starting the program to its first response.",
        "",
        "| runs | after a clean stop, s | killed while runs arrived, s |",
        "|---:|---:|---:|",
        *(f"| {one.runs:,} | {one.start_after_stop:.2f} | {one.start_after_kill:.2f} |" for one in (few, many)),
        "",
        *_commands(many, options.longest),
    ])


def _loaded(measured: Measured) -> str:
    loading = f"loaded in {measured.loading:,.0f} s, indexed {measured.indexed_after:.1f} s later; " if measured.loading else "loaded in parts; "
    return f"- {measured.runs:,} runs: {loading}{measured.disk / 1e9:.2f} GB on disk; {measured.memory:.0f} MB of memory at the end"


def _row(name: str, few: Measured, many: Measured) -> str:
    cells = [
        *_times(few.settled[name]), f"{few.requests[name]:.0f}",
        *_times(many.settled[name]), f"{many.requests[name]:.0f}",
        *_times(many.arriving[name]), f"{many.requests_arriving[name]:.0f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _commands(many: Measured, longest: float) -> list[str]:
    if not many.gc or not many.reindex:
        return []
    rows = []
    for name, ran in {"`gc`": many.gc, "`reindex`": many.reindex}.items():
        ratios = [statistics.median(ran.meanwhile[asked]) / statistics.median(many.before[asked]) for asked in SEARCHES if ran.meanwhile[asked]]
        done, of = ran.progress or (0, 0)
        cells = [f"{ran.seconds:,.0f}", f"{done:,} of {of:,}", _flat(ran.memory), _flat(ran.server_memory)]
        rows.append(f"| {name} | {' | '.join(cells)} | {statistics.median(ratios):.1f} | {max(ratios):.1f} |")
    return [
        "## Commands",
        "",
        "The commands use the file of a running server, which receives each search once per second. A ratio compares",
        "the median of a search with its median on an idle server. The columns have the median and the maximum of",
        f"the ratios of all searches. A command is stopped after {longest:,.0f} s. `gc` removes deleted runs. Memory is in",
        "MB: after a tenth of the time, at the end, and at most.",
        "",
        "| command | s | progress at the end | memory of the command | memory of the server | median ratio | maximum ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _flat(memory_: list[float]) -> str:
    had = [one for one in memory_ if one] or [0.0]
    return f"{had[len(had) // 10]:.0f}, {had[-1]:.0f}, {max(had):.0f}"


def _times(seconds: list[float]) -> tuple[str, str]:
    return _ms(seconds), f"{1000 * statistics.quantiles(seconds, n=100, method='inclusive')[-1]:.1f}"


def _ms(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.1f}"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = Path("target/release/mlflow-serverless")
    arguments.add_argument("--subject", type=Path, default=release, help=f"path of a release build ({release})")
    arguments.add_argument("--runs", type=int, default=1_000_000, help="(1000000)")
    arguments.add_argument("--few", type=int, default=10_000, help="runs in the experiment for comparison (10000)")
    arguments.add_argument("--repetitions", type=int, default=_REPETITIONS, help=f"repetitions of each search ({_REPETITIONS})")
    arguments.add_argument("--removed", type=int, default=100_000, help="runs that gc removes; 0 skips the commands (100000)")
    arguments.add_argument("--longest", type=float, default=7200, help="timeout of gc and reindex in seconds (7200)")
    arguments.add_argument("--keep", type=Path, help="directory of the data, which is loaded if it is empty; the measurements change it")
    arguments.add_argument("--output", type=Path, help="path of the Markdown file; printed by default")
    options = arguments.parse_args()
    if options.few >= options.runs:
        arguments.error("--few must be less than --runs")
    return options


def main() -> int:
    """Measures both experiments, and writes the page."""
    options = _options()
    program = options.subject.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        directory = (options.keep or Path(temporary)).resolve()
        few = measure(program, directory / f"{options.few}", options.few, 0, options.repetitions, options.longest)
        many = measure(program, directory / f"{options.runs}", options.runs, options.removed, options.repetitions, options.longest)
    text = page(program, few, many, options)
    if options.output:
        options.output.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
