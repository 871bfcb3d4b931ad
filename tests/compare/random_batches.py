"""Random log batches for a run: repeated points, conflicting params, and invalid values."""

import random
from collections.abc import Iterator
from typing import Any

from tests.compare.scenario import Step

_METRICS = [f"m{number}" for number in range(6)] + ["a/b", "ü"]
_PARAMS = [f"p{number}" for number in range(8)]
_TAGS = [f"t{number}" for number in range(5)] + ["mlflow.runName", "mlflow.note.content"]
_BAD_KEYS = ["..", "/x", "a//b", "a#b", "", "k" * 251, "new\nline", "🧪"]
#: Does not contain zero: NaN is stored as zero with a flag, and the order of the two in a history
#: is not defined.
_VALUES = [1, -1, 0.5, 2.5, "NaN", "Infinity", "-Infinity", "3", 1e308, 1.7976931348623157e308, 7]
_BAD_METRICS: list[Any] = [
    {"key": "x", "value": "abc", "timestamp": 1},
    {"key": "x", "timestamp": 1},
    {"key": "x", "value": 1},
    {"key": "x", "value": 1, "timestamp": -1},
    {"key": "x", "value": 1, "timestamp": 1, "step": "s"},
    {"key": "x", "value": True, "timestamp": 1},
]


def batches(run: str, count: int, randomness: random.Random) -> Iterator[Step]:
    """Yields `count` batches for the run whose id is in the variable `run`. Some are sent twice."""
    previous = None
    for _ in range(count):
        repeated = previous is not None and randomness.random() < 0.15
        previous = previous if repeated else {"run_id": f"${{{run}}}", **_batch(randomness)}
        yield _post("runs/log-batch", previous)


def state(run: str, randomness: random.Random) -> Iterator[Step]:
    """Yields the requests that read everything back: the run, and the history of each metric,
    complete or in pages.
    """
    run_id = f"${{{run}}}"
    yield _get("runs/get", {"run_id": run_id})
    for key in _METRICS:
        query = {"run_id": run_id, "metric_key": key}
        if randomness.random() < 0.5:
            query["max_results"] = str(randomness.choice([7, 20, 100]))
        yield _get("metrics/get-history", query)
        size = str(randomness.choice([1, 5, 50]))
        yield _get("metrics/get-history-bulk-interval", {"run_ids": run_id, "metric_key": key, "max_results": size})


def _batch(randomness: random.Random) -> dict[str, Any]:
    """Returns a batch that is usually small and valid. Occasionally, a list has an invalid item or
    is too long.
    """
    metrics = [_metric(randomness) for _ in range(randomness.choice([0, 1, 1, 3, 10, 40]))]
    params = [{"key": key, "value": randomness.choice("xxxxy")} for key in _few(_PARAMS, randomness)]
    tags = [{"key": randomness.choice(_TAGS), "value": randomness.choice(["a", "b", ""])}
            for _ in range(randomness.choice([0, 0, 1, 3]))]
    spoil = randomness.random()
    if spoil < 0.04:
        metrics.insert(randomness.randint(0, len(metrics)), randomness.choice(_BAD_METRICS))
    elif spoil < 0.10:
        bad = {"key": randomness.choice(_BAD_KEYS), "value": "1", "timestamp": 1}
        randomness.choice([metrics, params, tags]).append(bad)
    elif spoil < 0.13:
        params += params[:1]
    elif spoil < 0.15:
        kind, limit = randomness.choice([("m", 1001), ("p", 101), ("t", 101)])
        extra = [{"key": f"{kind}{number}", "value": "1", "timestamp": number} for number in range(limit)]
        {"m": metrics, "p": params, "t": tags}[kind].extend(extra)
    return {"metrics": metrics, "params": params, "tags": tags}


def _metric(randomness: random.Random) -> dict[str, Any]:
    """Returns a point on a small grid, so that points are repeated and compete for the latest
    value.
    """
    return {
        "key": randomness.choice(_METRICS),
        "value": randomness.choice(_VALUES),
        "timestamp": randomness.randint(0, 4),
        "step": randomness.randint(-1, 4),
    }


def _few(keys: list[str], randomness: random.Random) -> list[str]:
    return randomness.sample(keys, randomness.choice([0, 0, 1, 2]))


def _post(path: str, body: dict[str, Any]) -> Step:
    return Step(path, "POST", f"/api/2.0/mlflow/{path}", json=body, has_json=True)


def _get(path: str, query: dict[str, str]) -> Step:
    return Step(path, "GET", f"/api/2.0/mlflow/{path}", query=query, follow_pages="max_results" in query)
