"""Records what stock MLflow's store finds in random searches of random traces, for
`shared/language/search/tests/trace_searches.rs`.

  .venv/bin/python -m tests.compare.record_trace_searches [--seed N] [--searches N] [--output FILE]
"""

import argparse
import json
import random
import re
import tempfile
from pathlib import Path

from mlflow.exceptions import MlflowException
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

from tests.compare import random_trace_filters, random_traces

_OUTPUT = Path(__file__).parents[2] / "shared/language/search/tests/trace_searches.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--searches", type=int, default=400, help="number of random searches, in addition to the fixed ones")
    parser.add_argument("--output", type=Path, default=_OUTPUT)
    arguments = parser.parse_args()
    randomness = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        store = SqlAlchemyStore(f"sqlite:///{directory}/mlflow.db", f"{directory}/artifacts")
        experiments = random_traces.fill(store, randomness)
        traces = random_traces.read(store, experiments)
        searches = random_trace_filters.written_out() + [
            random_trace_filters.search(randomness) for _ in range(arguments.searches)
        ]
        numbers = {trace["id"]: number for number, trace in enumerate(traces)}
        lines = [[*search, _answer(store, experiments, numbers, *search)] for search in searches]
    arguments.output.write_text(_compact({"traces": traces, "searches": lines}), encoding="utf-8")


def _answer(store, experiments, numbers, wanted, filter_string, order_by):
    """Returns the numbers of the traces that are found, or MLflow's message. Returns `None` for
    other exceptions.
    """
    try:
        found, _ = store.search_traces(
            locations=[experiments[place] for place in wanted],
            filter_string=filter_string,
            order_by=order_by,
            max_results=1000,
        )
    except MlflowException as error:
        # The store also wraps unexpected exceptions. Messages about `order_by` are the only regular
        # ones without a specific code.
        if error.error_code == "INVALID_PARAMETER_VALUE" or error.message.startswith("`order_by`"):
            return _sorted_sets(error.message)
        return None
    except Exception:
        return None
    return [numbers[trace.trace_id] for trace in found]


def _sorted_sets(message: str) -> str:
    """Sorts the elements of printed Python sets, whose order changes from run to run."""

    def sort(match: re.Match) -> str:
        return "{" + ", ".join(sorted(match[0][1:-1].split(", "))) + "}"

    return re.sub(r"\{'[^{}]*'\}", sort, message)


def _compact(recorded: dict) -> str:
    """Formats the recording with one trace or search per line."""
    parts = []
    for name, entries in recorded.items():
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
        parts.append(f'"{name}":[\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main()
