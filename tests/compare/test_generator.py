"""A small fixed sample of the random comparisons. The command line runs any number of them."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.compare.conftest import COMPARED
from tests.compare.generator import (
    INDEXERS,
    SHARE_OF_WRITES,
    compare_batches,
    compare_searches,
    compare_trace_searches,
    indexer_options,
)
from tests.support.http import Side
from tests.support.servers import start_subject

_SEED = 20


@pytest.fixture
def indexed_subjects(tmp_path) -> Iterator[list[Side]]:
    """Yields the server under test three times: with its indexer running, stopped, and delayed."""
    with ExitStack() as stops:
        sides = []
        for number, indexer in enumerate(INDEXERS):
            options, first = indexer_options(indexer), 830_000_000 + 10_000_000 * number
            server = start_subject(tmp_path / indexer, in_memory=True, first_experiment_id=first, options=options)
            stops.callback(server.stop)
            sides.append(Side(f"subject with its indexer {indexer}", server.url))
        yield sides


def _assert_same(reports: list[str], seed: int) -> None:
    assert not reports, f"{len(reports)} responses differ with seed {seed}:\n\n" + "\n\n".join(reports[:20])


def test_random_searches(reference, subject, record_property):
    reports, runner = compare_searches(reference, subject, count=12, runs=20, seed=_SEED)
    record_property(COMPARED, runner.requests)
    _assert_same(reports, _SEED)


def test_random_searches_between_writes(reference, indexed_subjects, record_property):
    """Checks that results do not depend on whether the index is up to date, delayed, or empty."""
    reports, runner = compare_searches(
        reference, *indexed_subjects, count=8, runs=20, seed=_SEED + 1, share_of_writes=SHARE_OF_WRITES
    )
    record_property(COMPARED, runner.requests)
    _assert_same(reports, _SEED + 1)


def test_random_batches(reference, subject, record_property):
    reports, runner = compare_batches(reference, subject, count=12, seed=_SEED)
    record_property(COMPARED, runner.requests)
    _assert_same(reports, _SEED)


def test_random_searches_of_traces(reference, subject, record_property):
    reports, runner = compare_trace_searches(reference, subject, count=7, traces=12, seed=_SEED, one_in=7)
    record_property(COMPARED, runner.requests)
    _assert_same(reports, _SEED)


def test_random_searches_of_traces_between_writes(reference, indexed_subjects, record_property):
    reports, runner = compare_trace_searches(
        reference, *indexed_subjects, count=5, traces=12, seed=_SEED + 1, share_of_writes=SHARE_OF_WRITES
    )
    record_property(COMPARED, runner.requests)
    _assert_same(reports, _SEED + 1)
