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
WORDS += ["nightly run 7", "Nightly-rerun", "a#b", "$x", "alpha beta gamma"]
#: Values that are too long for an index key, and that differ only beyond the part that fits.
LONG_WORDS = ["l" * 320, "l" * 320 + "a", "L" * 320 + "a", "l" * 320 + " run"]
NUMBERS = ["0", "1", "-1", "0.5", "1e3", "1000", "-3.25", "1e308", "5e-324", "2"]
DATASETS = ["iris", "Iris", "iris 2024", "it's", "d#1"]
DIGESTS = ["d1", "d2"]
CONTEXTS = ["train", "eval", ""]
STATUSES = ["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]

_VALUES = [0, 1, -1, 0.5, 1000, -3.25, 1e308, 5e-324, "NaN", "Infinity", "-Infinity", 2]


@dataclass(frozen=True)
class Store:
    """The names of the variables with the ids, the experiment of each run, and the start times."""

    experiments: list[str]
    runs: list[str]
    homes: list[str]
    times: list[int]


def plan(randomness: random.Random, experiments: int, runs: int) -> Store:
    """Plans a store. All start times are different, because runs with equal ones are sorted by id.

    More than half of the runs are in the first experiment, because in a large experiment searches
    read lists instead of every run.
    """
    names = [f"e{number}" for number in range(experiments)]
    homes = randomness.choices(names, [2 * experiments] + [1] * (experiments - 1), k=runs)
    times = randomness.sample(range(1, 10 * runs), runs)
    return Store(names, [f"r{number}" for number in range(runs)], homes, times)


def build(store: Store, randomness: random.Random) -> Iterator[Step]:
    """Yields the steps that fill the store."""
    for name in store.experiments:
        tags = [{"key": key, "value": randomness.choice(WORDS)} for key in _some(TAGS, randomness)]
        body = {"name": f"${{unique}} {randomness.choice(WORDS)} {name}", "tags": tags}
        yield _post("experiments/create", body, capture={name: "experiment_id"})
    for name, start, experiment in zip(store.runs, store.times, store.homes):
        yield from _build_run(name, start, experiment, randomness)
    for name in randomness.sample(store.experiments[1:], len(store.experiments) // 4):
        yield _post("experiments/delete", {"experiment_id": f"${{{name}}}"})


def _build_run(name: str, start: int, experiment: str, randomness: random.Random) -> Iterator[Step]:
    run = f"${{{name}}}"
    body: dict[str, Any] = {
        "experiment_id": f"${{{experiment}}}",
        "start_time": start,
        "run_name": randomness.choice(WORDS) or "unnamed",
        "user_id": randomness.choice(["", "ann", "bob"]),
        "tags": [{"key": key, "value": _word(randomness)} for key in _some(TAGS, randomness)],
    }
    yield _post("runs/create", body, capture={name: "run.info.run_id"})
    metrics = [
        {"key": key, "value": randomness.choice(_VALUES), "timestamp": randomness.randint(0, 3), "step": step}
        for key in _some(METRICS, randomness)
        for step in range(randomness.randint(1, 3))
    ]
    params = [{"key": key, "value": _word(randomness)} for key in _some(PARAMS, randomness)]
    yield _post("runs/log-batch", {"run_id": run, "metrics": metrics, "params": params})
    if randomness.random() < 0.4:
        yield _post("runs/log-inputs", {"run_id": run, "datasets": [_dataset(randomness) for _ in range(2)]})
    if randomness.random() < 0.6:
        update = {"run_id": run, "status": randomness.choice(STATUSES)}
        if randomness.random() < 0.7:
            update["end_time"] = start + randomness.randint(0, 50)
        yield _post("runs/update", update)
    if randomness.random() < 0.2:
        yield _post("runs/delete", {"run_id": run})


def change(store: Store, randomness: random.Random) -> Step:
    """Returns a write that changes which searches find a run or an experiment."""
    position = randomness.randrange(len(store.runs))
    run = {"run_id": f"${{{store.runs[position]}}}"}
    experiment = {"experiment_id": f"${{{randomness.choice(store.experiments)}}}"}
    value, timestamp = randomness.choice(_VALUES), randomness.randint(3, 9)
    metric = {"key": randomness.choice(METRICS), "value": value, "timestamp": timestamp}
    # The value of a param cannot be changed. If it exists, both sides refuse the write.
    param = {"key": randomness.choice(PARAMS), "value": _word(randomness)}
    tag = {"key": randomness.choice(TAGS), "value": _word(randomness)}
    status = {"status": randomness.choice(STATUSES)}
    ended = status | {"end_time": store.times[position] + randomness.randint(0, 50)}
    path, body = randomness.choice([
        ("runs/log-metric", run | metric),
        ("runs/log-metric", run | metric),
        ("runs/log-batch", run | {"metrics": [metric], "params": [param], "tags": [tag]}),
        ("runs/log-parameter", run | param),
        ("runs/set-tag", run | tag),
        ("runs/set-tag", run | {"key": "mlflow.runName", "value": randomness.choice(WORDS) or "unnamed"}),
        ("runs/delete-tag", run | {"key": tag["key"]}),
        ("runs/update", run | status),
        ("runs/update", run | ended),
        ("runs/update", run | {"run_name": randomness.choice(WORDS) or "unnamed"}),
        ("runs/log-inputs", run | {"datasets": [_dataset(randomness)]}),
        ("runs/delete", run),
        ("runs/restore", run),
        ("runs/restore", run),
        ("experiments/set-experiment-tag", experiment | tag),
        ("experiments/delete", experiment),
        ("experiments/restore", experiment),
        ("experiments/restore", experiment),
    ])
    return _post(path, body)


def _dataset(randomness: random.Random) -> dict[str, Any]:
    name, digest, context = (randomness.choice(among) for among in (DATASETS, DIGESTS, CONTEXTS))
    tags = [{"key": "mlflow.data.context", "value": context}] if context else []
    return {"dataset": {"name": name, "digest": digest, "source_type": "local", "source": "s"}, "tags": tags}


def _word(randomness: random.Random) -> str:
    return randomness.choice(LONG_WORDS if randomness.random() < 0.1 else WORDS)


def _some(keys: list[str], randomness: random.Random) -> list[str]:
    return [key for key in keys if randomness.random() < 0.6]


def _post(path: str, body: dict[str, Any], capture: dict[str, str] | None = None) -> Step:
    return Step(path, "POST", f"/api/2.0/mlflow/{path}", json=body, has_json=True, capture=capture or {})
