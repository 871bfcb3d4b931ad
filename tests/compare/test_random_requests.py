"""Random requests about label schemas, review queues, issues, MCP servers and skills, compared with
MLflow 3.18.0: a small fixed sample, and all in `make test-slow`. The command line runs any number.
"""

import pytest

from tests.compare.conftest import COMPARED, EXCUSED, NEXT_RELEASE
from tests.compare.random_domain import Requests
from tests.compare.random_requests import DOMAINS, compare_requests
from tests.support.http import Side

pytestmark = NEXT_RELEASE

_SEED = 7
_OF_SAMPLE, _OF_ALL = 30, 500


def _assert_same(sides: tuple[Side, Side], domain: type[Requests], count: int, seed: int, record_property) -> None:
    reports, runner, excuses = compare_requests(*sides, domain, count, seed)
    record_property(COMPARED, runner.requests)
    record_property(EXCUSED, excuses.excused_steps)
    assert not reports, f"{len(reports)} responses differ with seed {seed}:\n\n" + "\n\n".join(reports[:20])


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.domain)
def test_a_sample_of_random_requests(domain, next_reference, next_subject, record_property):
    _assert_same((next_reference, next_subject), domain, _OF_SAMPLE, _SEED, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.domain)
def test_random_requests(domain, next_reference, next_subject, record_property):
    _assert_same((next_reference, next_subject), domain, _OF_ALL, _SEED + 1, record_property)
