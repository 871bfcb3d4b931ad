"""The runs that are searched, and functions that load them into each side. Runs are determined by
the seed.
"""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.http import Request, Side
from tests.support.servers import ARTIFACT_ROOT

EXPERIMENT = "bench"
#: The rare word, and the number of runs with the word in their names.
RARE_WORD, RARE_RUNS = "golden", 20

_METRICS = ["accuracy", "loss", "f1", "auc", "precision", "recall", "val_accuracy", "val_loss", "val_f1", "seconds"]
_PARAMS = {
    "optimizer": ["adam", "sgd", "lion"],
    "depth": [str(depth) for depth in range(2, 10)],
    "learning_rate": ["0.1", "0.03", "0.01", "0.003", "0.001"],
    "batch_size": ["32", "64", "128", "256"],
}
_TAGS = {"team": ["red", "green", "blue", "white"], "stage": ["dev", "test", "production"]}
_WORDS = ["calm", "swift", "proud", "quiet", "brave", "owl", "fox", "carp", "wren", "mole"]
_FIRST_START = 1_750_000_000_000
_THREADS = 8


@dataclass(frozen=True)
class RunData:
    """A run as plain data, in the form of requests."""

    name: str
    start_time: int
    end_time: int
    status: str
    metrics: dict[str, float]
    params: dict[str, str]
    tags: dict[str, str]


def runs(count: int, seed: int) -> Iterator[RunData]:
    """Yields `count` runs with 10 metrics, 5 params and 3 tags each. All start times
    are different.
    """
    randomness = random.Random(seed)
    rare = set(randomness.sample(range(count), min(RARE_RUNS, count)))
    for number in range(count):
        words = randomness.sample(_WORDS, 2) + ([RARE_WORD] if number in rare else [])
        start = _FIRST_START + 60_000 * number
        yield RunData(
            name=f"{'-'.join(words)}-{number}",
            start_time=start,
            end_time=start + randomness.randint(1_000, 3_600_000),
            status=randomness.choices(["FINISHED", "FAILED", "KILLED"], [0.8, 0.15, 0.05])[0],
            metrics={key: randomness.random() for key in _METRICS},
            params={key: randomness.choice(values) for key, values in _PARAMS.items()} | {"seed": str(number)},
            tags={key: randomness.choice(values) for key, values in _TAGS.items()} | {"dataset": f"d{number % 50}"},
        )


def load_into_stock(database: Path, made: list[RunData]) -> None:
    """Loads the runs with MLflow's own store before its server starts. The rows are the same as
    with HTTP, in less than half of the time.
    """
    # Imported here, because it takes seconds.
    from mlflow.entities import Metric, Param, RunStatus, RunTag
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(f"sqlite:///{database}", ARTIFACT_ROOT)
    experiment = store.create_experiment(EXPERIMENT)
    for run in made:
        tags = [RunTag(key, value) for key, value in run.tags.items()]
        run_id = store.create_run(experiment, "bench", run.start_time, tags, run.name).info.run_id
        metrics = [Metric(key, value, run.end_time, 0) for key, value in run.metrics.items()]
        store.log_batch(run_id, metrics, [Param(key, value) for key, value in run.params.items()], [])
        store.update_run_info(run_id, RunStatus.from_string(run.status), run.end_time, run.name)


def load_by_http(side: Side, made: list[RunData]) -> None:
    """Loads the runs with the requests that a client would send, several concurrently."""
    experiment = post(side, "experiments/create", {"name": EXPERIMENT})["experiment_id"]
    stop = threading.Event()

    def load(run: RunData) -> None:
        if stop.is_set():
            return
        try:
            _load_run(side, experiment, run)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(load, made):
            pass


def _load_run(side: Side, experiment: str, run: RunData) -> None:
    body = {"experiment_id": experiment, "run_name": run.name, "start_time": run.start_time, "user_id": "bench"}
    created = post(side, "runs/create", body | {"tags": pairs(run.tags)})
    run_id = created["run"]["info"]["run_id"]
    metrics = [pair | {"timestamp": run.end_time, "step": 0} for pair in pairs(run.metrics)]
    post(side, "runs/log-batch", {"run_id": run_id, "metrics": metrics, "params": pairs(run.params)})
    post(side, "runs/update", {"run_id": run_id, "status": run.status, "end_time": run.end_time})


def experiment_id(side: Side) -> str:
    """Returns the id of the experiment on this side."""
    found = post(side, "experiments/search", {"filter": f"name = '{EXPERIMENT}'", "max_results": 1})
    return found["experiments"][0]["experiment_id"]


def post(side: Side, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Sends a request that must succeed."""
    answer = side.send(Request.of_json("POST", f"/api/2.0/mlflow/{path}", body))
    if answer.status != 200:
        raise RuntimeError(f"{side.name}: {path} returned {answer.status}: {answer.body}")
    return answer.body


def pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Converts values to the key-value pairs of requests."""
    return [{"key": key, "value": value} for key, value in values.items()]
