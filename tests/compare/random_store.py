"""A random store of experiments and runs, built identically on both sides."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.compare.scenario import Step

METRICS = ["loss", "acc", "a b", "val/loss", "über"]
PARAMS = ["lr", "depth", "with space", "n/a", "größe"]
TAGS = ["word", "team", "with space", "env"]
WORDS = ["alpha", "Alpha", "beta", "100%", "a_b", "it's", "", "é", "É", "日本", "10", "9", " space ", "ALPHA"]
NUMBERS = ["0", "1", "-1", "0.5", "1e3", "1000", "-3.25", "1e308", "5e-324", "2"]
STATUSES = ["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]

_VALUES = [0, 1, -1, 0.5, 1000, -3.25, 1e308, 5e-324, "NaN", "Infinity", "-Infinity", 2]


@dataclass(frozen=True)
class Store:
    """The names of the variables that hold the ids, and the times that occur."""

    experiments: list[str]
    runs: list[str]
    times: list[int]


def plan(randomness: random.Random, experiments: int, runs: int) -> Store:
    """The shape of a store. Times of start are all different, as equal ones are ordered by run id."""
    times = randomness.sample(range(1, 10 * runs), runs)
    return Store([f"e{number}" for number in range(experiments)], [f"r{number}" for number in range(runs)], times)


def build(store: Store, randomness: random.Random) -> Iterator[Step]:
    """The steps that fill the store."""
    for name in store.experiments:
        tags = [{"key": key, "value": randomness.choice(WORDS)} for key in _some(TAGS, randomness)]
        body = {"name": f"${{unique}} {randomness.choice(WORDS)} {name}", "tags": tags}
        yield _post("experiments/create", body, capture={name: "experiment_id"})
    for name, start in zip(store.runs, store.times):
        yield from _build_run(name, start, randomness.choice(store.experiments), randomness)
    for name in randomness.sample(store.experiments, len(store.experiments) // 4):
        yield _post("experiments/delete", {"experiment_id": f"${{{name}}}"})


def _build_run(name: str, start: int, experiment: str, randomness: random.Random) -> Iterator[Step]:
    run = f"${{{name}}}"
    body: dict[str, Any] = {
        "experiment_id": f"${{{experiment}}}",
        "start_time": start,
        "run_name": randomness.choice(WORDS) or "unnamed",
        "user_id": randomness.choice(["", "ann", "bob"]),
        "tags": [{"key": key, "value": randomness.choice(WORDS)} for key in _some(TAGS, randomness)],
    }
    yield _post("runs/create", body, capture={name: "run.info.run_id"})
    metrics = [
        {"key": key, "value": randomness.choice(_VALUES), "timestamp": randomness.randint(0, 3), "step": step}
        for key in _some(METRICS, randomness)
        for step in range(randomness.randint(1, 3))
    ]
    params = [{"key": key, "value": randomness.choice(WORDS)} for key in _some(PARAMS, randomness)]
    yield _post("runs/log-batch", {"run_id": run, "metrics": metrics, "params": params})
    if randomness.random() < 0.6:
        update = {"run_id": run, "status": randomness.choice(STATUSES)}
        if randomness.random() < 0.7:
            update["end_time"] = start + randomness.randint(0, 50)
        yield _post("runs/update", update)
    if randomness.random() < 0.2:
        yield _post("runs/delete", {"run_id": run})


def _some(keys: list[str], randomness: random.Random) -> list[str]:
    return [key for key in keys if randomness.random() < 0.6]


def _post(path: str, body: dict[str, Any], capture: dict[str, str] | None = None) -> Step:
    return Step(path, "POST", f"/api/2.0/mlflow/{path}", json=body, has_json=True, capture=capture or {})
