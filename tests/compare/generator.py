r"""Random searches of runs and traces, and random log batches, sent to both servers.

  python -m tests.compare.generator --filters 10000 --batches 2000 --traces 2000 --seed 7
  python -m tests.compare.generator --filters 2000 --batches 0 --runs 400 --indexer delayed \
      --writes 0.2

The requests are determined by the seed. COMPARE_SUBJECT=mlflow compares stock MLflow with itself.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.compare import random_trace_store
from tests.compare.differences import Difference
from tests.support.pair import pair
from tests.compare.random_batches import batches, state
from tests.compare.random_filters import experiment_search, run_search
from tests.compare.random_store import Store, build, change, plan
from tests.compare.runner import Excuse, Runner
from tests.compare.scenario import Step
from tests.support.http import Answer, Side

_BATCH_WORKERS = 6
#: Concurrency of searches. Without Flask-WTF, every search of stock MLflow tries to import its auth
#: module again, and a concurrent search that sees the half-imported module fails with a 500. One
#: search at a time keeps both servers busy anyway.
_SEARCH_WORKERS = 1
_EXPERIMENTS = 8
_TRACES = 60
_MOST_TRACES = 1000
_BATCHES_PER_RUN = 25
_SHARE_OF_EXPERIMENT_SEARCHES = 0.25
_DIFFERENCES_PRINTED = 20

INDEXERS = ["running", "stopped", "delayed"]
_INDEXER_DELAY_MS = 2000
#: Interval at which runs that change repeatedly are indexed.
_RUN_INDEXING_INTERVAL_MS = 3000
#: Fraction of searches that are preceded by writes. With one in five, a delayed index has caught up
#: with some of the writes, but not with all.
SHARE_OF_WRITES = 0.2


def compare_searches(
    reference: Side, *subjects: Side, count: int, runs: int, seed: int, share_of_writes: float = 0
) -> tuple[list[str], Runner]:
    """Fills all sides with the same random runs, and sends them the same random searches.

    The fraction `share_of_writes` of the searches is preceded by writes, which an index may not
    contain yet.
    """
    randomness = random.Random(seed)
    runner = _runner(reference, *subjects, kind="filters", seed=seed)
    store = plan(randomness, _EXPERIMENTS, runs)
    # Sequential, because ids are named in the order in which a side returns them.
    reports = [report for step in build(store, randomness) for report in runner.play(step)]
    works = (_some_writes_and_a_search(store, randomness, share_of_writes) for _ in range(count))
    reports += _play_all(runner, works, _SEARCH_WORKERS)
    return reports, runner


def _some_writes_and_a_search(store: Store, randomness: random.Random, share_of_writes: float) -> list[Step]:
    writes = randomness.choice([1, 1, 2, 5, 20]) if randomness.random() < share_of_writes else 0
    maker = experiment_search if randomness.random() < _SHARE_OF_EXPERIMENT_SEARCHES else run_search
    return [change(store, randomness) for _ in range(writes)] + [maker(store, randomness)]


def compare_trace_searches(
    reference: Side, *subjects: Side, count: int, traces: int, seed: int, share_of_writes: float = 0, one_in: int = 1
) -> tuple[list[str], Runner]:
    """Fills all sides with the same random traces, and sends them the same random searches. Without
    writes, it begins with fixed searches for cases that random searches rarely hit: all of them, or
    one in `one_in`.
    """
    randomness = random.Random(seed)
    runner = _runner(reference, *subjects, kind="traces", seed=seed, excuse=random_trace_store.excuse)
    # Clients choose the ids of traces, so each seed has its own range.
    numbers = range(seed * _MOST_TRACES, seed * _MOST_TRACES + traces)
    steps = list(random_trace_store.build(numbers, randomness))
    if not share_of_writes:
        steps += random_trace_store.written_out(one_in)
    reports = [report for step in steps for report in runner.play(step)]
    for _ in range(count):
        if randomness.random() < share_of_writes:
            for _ in range(randomness.choice([1, 2, 5])):
                reports += runner.play(random_trace_store.change(numbers, randomness))
        reports += runner.play(random_trace_store.search(randomness))
    return reports, runner


def indexer_options(indexer: str) -> list[str]:
    """Returns the options of the server under test for an indexer that indexes each change
    immediately, is stopped, or is delayed.
    """
    each_change = ["--run-indexing-interval", "0"]
    delay = ["--indexer-delay", str(_INDEXER_DELAY_MS), "--run-indexing-interval", str(_RUN_INDEXING_INTERVAL_MS)]
    return {"running": each_change, "stopped": ["--no-indexer"], "delayed": delay}[indexer]


def compare_batches(reference: Side, subject: Side, count: int, seed: int) -> tuple[list[str], Runner]:
    """Sends both sides the same random batches for several runs concurrently, and then compares
    everything that is stored.
    """
    randomness = random.Random(seed)
    runner = _runner(reference, subject, kind="batches", seed=seed)
    names = [f"r{number}" for number in range(-(-count // _BATCHES_PER_RUN))]
    reports = [report for step in _new_runs(names) for report in runner.play(step)]
    works = []
    for name, left in zip(names, range(count, 0, -_BATCHES_PER_RUN)):
        own = random.Random(randomness.random())
        works.append(itertools.chain(batches(name, min(left, _BATCHES_PER_RUN), own), state(name, own)))
    reports += _play_all(runner, works, _BATCH_WORKERS)
    return reports, runner


#: Part of the message of stock MLflow's 500 for a list that Python's literal parser cannot read.
_PYTHON_WORDS = "malformed node or string"
_CODES_OF_400 = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST"}


def _runner(reference: Side, *subjects: Side, kind: str, seed: int, excuse: Excuse | None = None) -> Runner:
    # Ends with a period, so that no seed's text is a prefix of another's.
    variables = {"unique": f"{kind} {seed}."}
    return Runner(reference, *subjects, variables=variables, excuse=excuse or _excuse_crash)


def _excuse_crash(_step: str, found: list[Difference], reference: Answer, subject: Answer) -> list[Difference]:
    """Accepts differences if stock MLflow crashes, and the server under test returns a client error
    with a message.
    """
    crashed = reference.status == 500 and (reference.kind == "html" or _PYTHON_WORDS in str(reference.body))
    refused = subject.status == 400 and subject.kind == "json"
    named = refused and subject.body.get("error_code") in _CODES_OF_400 and bool(subject.body.get("message"))
    return [] if crashed and named else found


def _new_runs(names: Iterable[str]) -> Iterable[Step]:
    yield Step("experiment", "POST", "/api/2.0/mlflow/experiments/create", json={"name": "${unique}"}, has_json=True,
               capture={"experiment": "experiment_id"})
    for name in names:
        body = {"experiment_id": "${experiment}", "run_name": name, "start_time": 1}
        yield Step("run", "POST", "/api/2.0/mlflow/runs/create", json=body, has_json=True,
                   capture={name: "run.info.run_id"})


def _play_all(runner: Runner, works: Iterable[Iterable[Step]], workers: int) -> list[str]:
    """Plays several sequences of steps concurrently, each in its own order."""

    def play(steps: Iterable[Step]) -> list[str]:
        return [report for step in steps for report in runner.play(step)]

    with ThreadPoolExecutor(workers) as threads:
        return [report for reports in threads.map(play, works) for report in reports]


def main() -> int:
    """Starts two servers, compares their responses, and prints the differences. Returns 1 if there
    are any.
    """
    arguments = argparse.ArgumentParser(description="Compare random requests with stock MLflow.")
    arguments.add_argument("--filters", type=int, default=1000, help="random searches (1000)")
    arguments.add_argument("--batches", type=int, default=500, help="random log batches (500)")
    arguments.add_argument("--traces", type=int, default=0, help="random trace searches (0)")
    arguments.add_argument("--runs", type=int, default=200, help="runs in the store (200)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--writes", type=float, default=0.0, help="fraction of searches that are preceded by writes (0)")
    arguments.add_argument("--indexer", choices=INDEXERS, default="running", help="state of the indexer of the server under test (running)")
    options = arguments.parse_args()
    with pair(options=indexer_options(options.indexer)) as sides:
        outcomes = [
            compare_searches(
                *sides, count=options.filters, runs=options.runs, seed=options.seed, share_of_writes=options.writes
            ),
            compare_batches(*sides, count=options.batches, seed=options.seed),
            # The second half is sent between writes.
            compare_trace_searches(*sides, count=options.traces // 2, traces=_TRACES, seed=options.seed),
            compare_trace_searches(
                *sides,
                count=options.traces - options.traces // 2,
                traces=_TRACES,
                seed=options.seed + 1,
                share_of_writes=SHARE_OF_WRITES,
            ),
        ]
    reports = [report for found, _ in outcomes for report in found]
    print("\n\n".join(reports[:_DIFFERENCES_PRINTED]))
    if reports:
        print(f"\nseed {options.seed}")
    names = ("searches", "batches", "searches of traces", "searches of traces between writes")
    for name, (found, runner) in zip(names, outcomes):
        print(f"{name}: {runner.requests} requests, {len(found)} differ, statuses {dict(runner.statuses)}")
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
