"""Random requests of several users about label schemas, review queues and issues, compared with
MLflow 3.18.0.
"""

import base64
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.differences import Difference
from tests.compare.random_domain import Requests
from tests.compare.random_reviews import Issues, LabelSchemas, ReviewQueues
from tests.compare.runner import Runner
from tests.compare.scenario import Step
from tests.support.http import Answer, Side
from tests.support.next_release import next_release
from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both

pytestmark = pytest.mark.slow

_SEED, _COUNT = 11, 250
#: The users, and their permissions for the first experiment and the second.
_USERS = {"ann": ("EDIT", "READ"), "bob": ("READ", "EDIT"), "carol": ("MANAGE", None), "dan": (None, "MANAGE"), "eve": ("USE", "DENY")}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("random"), "NO_PERMISSIONS", release=next_release()) as pair:
        for server in pair:
            for name in _USERS:
                answer = server.ask(ADMIN, "POST", f"{V2}/users/create", {"username": name, "password": PASSWORD})
                assert answer.status_code == 200, answer.text
        yield pair


def _as(step: Step, user: str) -> Step:
    credentials = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
    return replace(step, name=f"{step.name} as {user}", headers=step.headers | {"Authorization": f"Basic {credentials}"})


def _grants() -> Iterator[Step]:
    for user, levels in _USERS.items():
        for experiment, level in zip(("experiment", "another"), levels):
            if level is not None:
                grant = {"username": user, "resource_type": "experiment", "resource_id": f"${{{experiment}}}", "permission": level}
                yield Step("grant", "POST", f"{V3}/users/permissions/grant", json=grant, has_json=True)


def _excuse(step: str, found: list[Difference], reference: Answer, subject: Answer) -> list[Difference]:
    """Accepts all differences between two refusals. Our server checks requests before permissions,
    and only administrators learn that something does not exist.

    Deleting a queue that does not exist succeeds on both servers, unless MLflow looks for the queue
    to check permissions.
    """
    if reference.status == 404 and step.startswith("POST /delete "):
        return [] if subject.status in (200, 403) else found
    return [] if reference.status >= 400 and 400 <= subject.status < 500 else found


@pytest.mark.parametrize("domain", [LabelSchemas, ReviewQueues, Issues], ids=lambda domain: domain.domain)
def test_random_requests_of_users(domain: type[Requests], servers: tuple[Server, Server]) -> None:
    reference, subject = Side("reference", servers[0].url), Side("subject", servers[1].url)
    randomness = random.Random(f"{domain.domain} {_SEED}")
    requests = domain(randomness)
    runner = Runner(reference, subject, variables={"unique": f"-{domain.domain}-", **requests.variables()}, excuse=_excuse)
    reports = [report for step in (*requests.begin(), *_grants()) for report in runner.play(_as(step, ADMIN))]
    assert not reports and set(runner.statuses) == {200}, reports
    for step in requests.random_steps(_COUNT):
        # Only the administrator deletes traces, and creates them again.
        is_about_traces = step.path.startswith(f"{V3}/traces") and not step.path.endswith("/assessments")
        reports += runner.play(_as(step, ADMIN if is_about_traces else randomness.choice([*_USERS, ADMIN])))
    assert not reports, f"{len(reports)} responses differ with seed {_SEED}:\n\n" + "\n\n".join(reports[:20])
