"""Every page of MLflow's UI, and what people do there, on stock MLflow and on the server under test.

`make test` has a sample: other tests of it see the same answers without a page. `make test-slow` has all of the pinned version, and
`make test-browser` all of the next.
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

#: Pages first: the flows add to what they show.
_PAGES = PAGES | PAGES_OF_3_18 if ui.VERSION.startswith("3.18.") else PAGES
_STEPS = _PAGES | FLOWS
#: Flows that change nothing, and end at charts.
_COMPARISONS = {name: FLOWS[name] for name in ("choose runs and compare them", "compare versions of a model")}
assert SAMPLE.keys() <= _STEPS.keys()
assert len(_STEPS) == len(_PAGES) + len(FLOWS), "two steps have the same name"

# All in one process: two servers and two browsers are enough for a machine.
pytestmark = pytest.mark.xdist_group("browser")


def _param(name: str):
    is_slow = name not in SAMPLE and not ui.OTHER
    return pytest.param(name, marks=pytest.mark.slow if is_slow else ())


@pytest.fixture(params=[_param(name) for name in _STEPS], scope="session")
def step(request: pytest.FixtureRequest) -> tuple[str, Callable[[Visit], None]]:
    return request.param, _STEPS[request.param]


def test_nothing_fails(see, step):
    """No console error, no failed request, no page that spins for ever, no link to what is not built."""
    name, do = step
    problems = [
        f"{side}: {problem}"
        for side, seen in see(name, do).items()
        for problem in seen.problems
        if not ALLOWED.problem(name, side, problem)
    ]
    assert problems == []


def test_same_texts(see, step):
    """What is visible is the same on both sides. What differs and changes nothing is looked at once more: of a chart that is drawn late on a busy
    machine, some axis may be missing."""
    name, do = step
    found = _differences(name, see(name, do))
    if found and name in _PAGES | _COMPARISONS:
        found = _differences(name, see(f"{name}, once more", do))
    assert found == {}


def _differences(name: str, seen: Both) -> dict[str, list[str]]:
    """The lines that only one side shows, by places, but for those that are allowed."""
    reference, subject = seen["reference"].looks, seen["subject"].looks
    assert list(reference) == list(subject)
    any_order = ALLOWED.any_order(name)
    found = {place: differences(reference[place], subject[place], any_order) for place in reference}
    found = {place: [line for line in lines if not ALLOWED.line(name, line)] for place, lines in found.items()}
    return {place: lines for place, lines in found.items() if lines}
