"""Measures the number of metrics per second that each side accepts from concurrent clients, each of
which logs to its own run.
"""

import itertools
import json
import os
import random
import statistics
import time
from dataclasses import dataclass

from bench.connection import Call, Connection, calls_a_second

CONNECTIONS = 8
_WARM_UP_SECONDS = 2
_BATCH = 100
_KEYS = 10

#: The calls, by their names in the table.
CALLS = ["log-metric", "log-batch, 100 metrics at a step", "log-batch, 100 steps of a metric"]


@dataclass(frozen=True)
class Throughput:
    """Calls per second in each round."""

    name: str
    stock: list[float]
    subject: list[float]
    load: float

    @property
    def ratio(self) -> float:
        """Returns the ratio of the subject's throughput to stock MLflow's."""
        return statistics.median(self.subject) / statistics.median(self.stock)

    def row(self) -> str:
        """Returns a row of the table."""
        each = ["/".join(f"{value:,.0f}" for value in values) for values in (self.stock, self.subject)]
        medians = [f"{statistics.median(values):,.0f}" for values in (self.stock, self.subject)]
        return f"| {self.name} | {' | '.join(medians)} | {self.ratio:.1f} | {' | '.join(each)} | {self.load:.1f} |"


def ceiling(url: str, seconds: float) -> float:
    """Returns the number of calls per second that this client makes if the server has almost
    nothing to do.
    """
    return calls_a_second(url, [lambda connection: connection.get("/health")] * CONNECTIONS, 0.5, seconds)


def measure(stock: str, subject: str, rounds: int, seconds: float) -> list[Throughput]:
    """Measures both sides in turn. A side receives no requests while the other one is measured."""
    measured = []
    for name in CALLS:
        rates: dict[str, list[float]] = {stock: [], subject: []}
        for number in range(rounds):
            for url in (stock, subject) if number % 2 else (subject, stock):
                rates[url].append(calls_a_second(url, _calls(url, name), _WARM_UP_SECONDS, seconds))
        measured.append(Throughput(name, rates[stock], rates[subject], os.getloadavg()[0]))
        print(measured[-1].row(), flush=True)
    return measured


def alone(url: str, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Measures one server alone, for comparing builds."""
    return {
        name: [calls_a_second(url, _calls(url, name), _WARM_UP_SECONDS, seconds) for _ in range(rounds)]
        for name in CALLS
    }


def _calls(url: str, name: str) -> list[Call]:
    """Returns a call with a new run for each connection."""
    connection = Connection(url)
    body = {"name": f"logging-{time.time_ns()}"}
    experiment = json.loads(connection.post("experiments/create", body))["experiment_id"]
    calls = []
    for _ in range(CONNECTIONS):
        created = connection.post("runs/create", {"experiment_id": experiment, "start_time": _now()})
        calls.append(_call(name, json.loads(created)["run"]["info"]["run_id"]))
    connection.close()
    return calls


def _call(name: str, run_id: str) -> Call:
    steps = itertools.count()

    def point(key: str, step: int) -> dict:
        return {"key": key, "value": random.random(), "timestamp": _now(), "step": step}

    def log_metric(connection: Connection) -> None:
        number = next(steps)
        metric = point(f"metric_{number % _KEYS}", number // _KEYS)
        connection.post("runs/log-metric", {"run_id": run_id} | metric)

    def log_step(connection: Connection) -> None:
        step = next(steps)
        metrics = [point(f"metric_{number}", step) for number in range(_BATCH)]
        connection.post("runs/log-batch", {"run_id": run_id, "metrics": metrics})

    def log_curve(connection: Connection) -> None:
        first = next(steps) * _BATCH
        metrics = [point("curve", first + number) for number in range(_BATCH)]
        connection.post("runs/log-batch", {"run_id": run_id, "metrics": metrics})

    return dict(zip(CALLS, (log_metric, log_step, log_curve)))[name]


def _now() -> int:
    return int(time.time() * 1000)
