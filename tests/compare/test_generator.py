"""A fixed sample of the random comparisons; the command line runs as many as one has time for."""

from collections.abc import Iterator

import pytest

from tests.compare.conftest import COMPARED
from tests.compare.generator import INDEXERS, SHARE_OF_WRITES, compare_batches, compare_searches, indexer_options
from tests.support.http import Side
from tests.support.servers import start_subject

_SEED = 20


@pytest.fixture(params=INDEXERS)
def indexed_subject(request: pytest.FixtureRequest, tmp_path) -> Iterator[Side]:
    """The server under test with its indexer running, stopped, or behind."""
    options = indexer_options(request.param)
    server = start_subject(tmp_path / "subject", in_memory=True, first_experiment_id=830_000_000, options=options)
    yield Side("subject", server.url)
    server.stop()


def test_random_searches(reference, subject, request: pytest.FixtureRequest):
    reports, runner = compare_searches(reference, subject, count=300, runs=60, seed=_SEED)
    request.config.stash[COMPARED] += runner.requests
    assert not reports, f"{len(reports)} searches differ:\n\n" + "\n\n".join(reports[:20])


def test_random_searches_between_writes(reference, indexed_subject, request: pytest.FixtureRequest):
    """Whether the index is up to date, or behind, or empty: what is found is the same."""
    reports, runner = compare_searches(
        reference, indexed_subject, count=150, runs=200, seed=_SEED + 1, share_of_writes=SHARE_OF_WRITES
    )
    request.config.stash[COMPARED] += runner.requests
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports[:20])


def test_random_batches(reference, subject, request: pytest.FixtureRequest):
    reports, runner = compare_batches(reference, subject, count=100, seed=_SEED)
    request.config.stash[COMPARED] += runner.requests
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports[:20])
