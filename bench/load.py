"""Measures a load of many concurrent runs, each of which is created, logged to and ended, and the
times of searches during the load, right after it, and later.
"""

import itertools
import json
import multiprocessing
import os
import sqlite3
import statistics
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench.data as data
from bench.connection import Connection, for_each
from bench.indexed import wait_until_indexed
from bench.throughput import CONNECTIONS

#: The searches, by their names in the table.
SEARCHES: dict[str, dict[str, Any]] = {
    "latest 100": {},
    "by start_time": {"order_by": ["attributes.start_time ASC"]},
    "by end_time": {"order_by": ["attributes.end_time DESC"]},
    "metric above a value, best first": {
        "filter": "metrics.accuracy > 0.9",
        "order_by": ["metrics.accuracy DESC"],
    },
    "a param": {"filter": "params.optimizer = 'adam'"},
}
_ROWS = 100
#: Pause between two searches during the load.
_PAUSE_SECONDS = 0.5
#: Duration of the phase right after the load.
_AFTER_SECONDS = 10
_SETTLED_REPETITIONS = 20

#: Seconds of each search, by its name.
Times = dict[str, list[float]]


@dataclass
class Load:
    """The measurements. Sizes are in bytes."""

    runs: int
    seconds: float = 0
    indexed_after: float = 0
    during: Times = field(default_factory=dict)
    right_after: Times = field(default_factory=dict)
    settled: Times = field(default_factory=dict)
    disk: int = 0
    log: int = 0
    free: int = 0
    cpu: float = 0
    loadavg: float = 0

    def rows(self) -> list[str]:
        """Returns the rows of the table of searches, with median and maximum."""
        return [
            f"| {name} | {' | '.join(_cell(times.get(name, [])) for times in (self.during, self.right_after, self.settled))} |"
            for name in SEARCHES
        ]


def measure(url: str, directory: Path, pid: int, made: list[data.RunData]) -> Load:
    """Loads the runs into a server with its data in `directory`, with concurrent searches, until
    the index is up to date.
    """
    load, cpu_before = Load(len(made)), _cpu_seconds(pid)
    with_experiment = Connection(url)
    created = with_experiment.post("experiments/create", {"name": f"load-{time.time_ns()}"})
    experiment = json.loads(created)["experiment_id"]
    ended = threading.Event()
    prober = threading.Thread(target=lambda: load.during.update(_probe(url, experiment, ended.is_set)))
    prober.start()
    # In a separate process. Otherwise, searches would wait for Python's interpreter lock, which the
    # sender holds, instead of the server.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as sender:
        try:
            load.seconds = sender.submit(_send, url, experiment, made).result()
            load.loadavg = os.getloadavg()[0]
        finally:
            ended.set()
            prober.join()
    end = time.monotonic()
    waits: list[float] = []
    waiter = threading.Thread(target=lambda: waits.append(wait_until_indexed(directory)))
    waiter.start()
    load.right_after = _probe(url, experiment, lambda: time.monotonic() - end > _AFTER_SECONDS)
    waiter.join()
    [load.indexed_after] = waits
    load.cpu = _cpu_seconds(pid) - cpu_before
    repetitions = itertools.count()
    load.settled = _probe(url, experiment, lambda: next(repetitions) >= _SETTLED_REPETITIONS, pause=0)
    load.disk, load.log, load.free = sizes(directory)
    return load


def _cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process, which is hardly affected by other programs, unlike elapsed
    time.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sizes(directory: Path) -> tuple[int, int, int]:
    """Returns the bytes of the database, of its write-ahead log, and of its free pages."""
    file = directory / "dynamodb.sqlite"
    log = file.with_name(file.name + "-wal")
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30) as database:
        free, page = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    return file.stat().st_size, log.stat().st_size if log.exists() else 0, free * page


def _send(url: str, experiment: str, made: list[data.RunData]) -> float:
    """Sends all runs with several concurrent clients, and returns the seconds that it took."""
    start = time.monotonic()
    for_each(url, made, lambda connection, run: send_run(connection, experiment, run), CONNECTIONS)
    return time.monotonic() - start


def send_run(connection: Connection, experiment: str, run: data.RunData, with_tags: bool = False) -> None:
    """Creates a run, logs all values in one batch, and ends the run."""
    body = {"experiment_id": experiment, "run_name": run.name, "start_time": run.start_time, "user_id": "bench"}
    if with_tags:
        body["tags"] = data.pairs(run.tags)
    run_id = json.loads(connection.post("runs/create", body))["run"]["info"]["run_id"]
    metrics = [pair | {"timestamp": run.end_time, "step": 0} for pair in data.pairs(run.metrics)]
    connection.post("runs/log-batch", {"run_id": run_id, "metrics": metrics, "params": data.pairs(run.params)})
    connection.post("runs/update", {"run_id": run_id, "status": run.status, "end_time": run.end_time})


def _probe(url: str, experiment: str, is_over, pause: float = _PAUSE_SECONDS) -> Times:
    """Sends each search in turn, repeatedly, over one connection."""
    connection = Connection(url)
    times: Times = {name: [] for name in SEARCHES}
    while not is_over():
        for name, search in SEARCHES.items():
            start = time.perf_counter()
            connection.post("runs/search", {"experiment_ids": [experiment], "max_results": _ROWS} | search)
            times[name].append(time.perf_counter() - start)
        time.sleep(pause)
    connection.close()
    return times


def _cell(seconds: list[float]) -> str:
    if not seconds:
        return "–"
    return f"{1000 * statistics.median(seconds):.0f} / {1000 * max(seconds):.0f}"
