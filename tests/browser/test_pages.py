"""Compares every page and flow of MLflow's UI on stock MLflow and on the server under test.

`make test` runs a sample, because other tests compare the same responses without a page. `make
test-slow` runs everything for the pinned version of the UI, and `make test-browser` for the next
one.
"""

from collections.abc import Callable

import pytest

from tests.browser import ui
from tests.browser.conftest import ALLOWED, Both
from tests.browser.flows import FLOWS
from tests.browser.names import SAMPLE
from tests.browser.steps import PAGES, PAGES_OF_3_18
from tests.browser.texts import differences
from tests.browser.visit import Visit

#: Pages come first, because flows change what they show.
_PAGES = PAGES | PAGES_OF_3_18 if ui.VERSION.startswith("3.18.") else PAGES
_STEPS = _PAGES | FLOWS
#: Flows that change nothing and end with charts.
_COMPARISONS = {name: FLOWS[name] for name in ("choose runs and compare them", "compare versions of a model")}
assert SAMPLE.keys() <= _STEPS.keys()
assert len(_STEPS) == len(_PAGES) + len(FLOWS), "the names of steps must be unique"

# Runs in one process, because two servers and two browsers are enough load for a machine.
pytestmark = pytest.mark.xdist_group("browser")


def _param(name: str):
    is_slow = name not in SAMPLE and not ui.OTHER
    return pytest.param(name, marks=pytest.mark.slow if is_slow else ())


@pytest.fixture(params=[_param(name) for name in _STEPS], scope="session")
def step(request: pytest.FixtureRequest) -> tuple[str, Callable[[Visit], None]]:
    return request.param, _STEPS[request.param]


def test_nothing_fails(see, step):
    """There must be no console errors, failed requests, pages that load forever, or links to
    features that are not implemented.
    """
    name, do = step
    problems = [
        f"{side}: {problem}"
        for side, seen in see(name, do).items()
        for problem in seen.problems
        if not ALLOWED.problem(name, side, problem)
    ]
    assert problems == []


def test_same_texts(see, step):
    """Checks that the visible texts are equal on both sides. Steps without side effects are
    repeated if there are differences, because a chart that is rendered late on a busy machine
    may lack an axis."""
    name, do = step
    found = _differences(name, see(name, do))
    if found and name in _PAGES | _COMPARISONS:
        found = _differences(name, see(f"{name}, once more", do))
    assert found == {}


def _differences(name: str, seen: Both) -> dict[str, list[str]]:
    """Returns the lines that only one side shows, by look, except those that are allowed."""
    reference, subject = seen["reference"].looks, seen["subject"].looks
    assert list(reference) == list(subject)
    any_order = ALLOWED.any_order(name)
    found = {place: differences(reference[place], subject[place], any_order) for place in reference}
    found = {place: [line for line in lines if not ALLOWED.line(name, line)] for place, lines in found.items()}
    return {place: lines for place, lines in found.items() if lines}
