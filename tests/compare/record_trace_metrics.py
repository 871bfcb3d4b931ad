"""Records stock MLflow's figures about traces, for `functions/traces/tests/it/recorded_metrics.rs`.

  .venv/bin/python -m tests.compare.record_trace_metrics [--seed N] [--output FILE]
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import requests

from tests.compare import trace_metric_cases
from tests.support.servers import StockMlflow

_OUTPUT = Path(__file__).parents[2] / "functions/traces/tests/it/figures.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the traces; the queries stay the same")
    parser.add_argument("--output", type=Path, default=_OUTPUT)
    arguments = parser.parse_args()
    # Prices come from the package, not from the internet.
    os.environ["MLFLOW_MODEL_CATALOG_URI"] = ""
    calls = trace_metric_cases.made(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        server = StockMlflow(Path(directory) / "stock")
        try:
            known = _make(server.url, calls)
            recorded = {
                "made": calls,
                "metrics": _ask(f"{server.url}/api/3.0/mlflow/traces/metrics", trace_metric_cases.asked(), known),
                "correlations": _ask(
                    f"{server.url}/api/3.0/mlflow/traces/calculate-filter-correlation",
                    trace_metric_cases.correlations(),
                    known,
                ),
            }
        finally:
            server.stop()
    arguments.output.write_text(_compact(recorded), "utf-8")
    print({name: len(entries) for name, entries in recorded.items()})


def _make(url: str, calls: list[trace_metric_cases.Call]) -> dict[str, str]:
    known: dict[str, str] = {}
    for call in calls:
        headers = {"content-type": "application/json"}
        if "experiment" in call:
            headers["x-mlflow-experiment-id"] = _filled(call["experiment"], known)
        body = _filled(json.dumps(call["body"]), known)
        answer = requests.request(call["method"], url + call["path"], data=body, headers=headers, timeout=60)
        if answer.status_code != 200:
            raise RuntimeError(f"{call}: {answer.text}")
        if "capture" in call:
            path, name = call["capture"]
            value: Any = answer.json()
            for part in path.split("."):
                value = value[part]
            known[name] = value
    return known


def _filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace("${" + name + "}", value)
    return text


def _ask(url: str, bodies: list[dict[str, Any]], known: dict[str, str]) -> list[list[Any]]:
    found = []
    for body in bodies:
        sent = _filled(json.dumps(body), known)
        answer = requests.post(url, data=sent, headers={"content-type": "application/json"}, timeout=60)
        # Stock MLflow responds with HTML to uncaught exceptions.
        said = answer.json() if answer.status_code < 500 else None
        found.append([body, answer.status_code, said if answer.status_code == 200 or not said else said["message"]])
    return found


def _compact(recorded: dict[str, list[Any]]) -> str:
    """Formats the recording with one call or query per line."""
    parts = []
    for name, entries in recorded.items():
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
        parts.append(f'"{name}":[\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main()
