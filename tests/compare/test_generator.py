"""A fixed sample of the random comparisons; the command line runs as many as one has time for."""

import pytest

from tests.compare.conftest import COMPARED
from tests.compare.generator import compare_batches, compare_searches

_SEED = 20


def test_random_searches(reference, subject, request: pytest.FixtureRequest):
    reports, runner = compare_searches(reference, subject, count=300, runs=60, seed=_SEED)
    request.config.stash[COMPARED] += runner.requests
    assert not reports, f"{len(reports)} searches differ:\n\n" + "\n\n".join(reports[:20])


def test_random_batches(reference, subject, request: pytest.FixtureRequest):
    reports, runner = compare_batches(reference, subject, count=100, seed=_SEED)
    request.config.stash[COMPARED] += runner.requests
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports[:20])
