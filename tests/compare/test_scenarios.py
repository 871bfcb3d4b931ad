"""Compares both servers' responses to the requests of each scenario.

`make test-slow` also sends the requests that are not part of the sample.
"""

from pathlib import Path

import pytest

from tests.compare.allowed import DIRECTORY, AllowList, load_entries
from tests.compare.conftest import COMPARED, EXCUSED
from tests.compare.runner import run
from tests.compare.scenario import Scenario, load
from tests.support.servers import subject_is_stock_mlflow

#: The largest files come first, so that they are not the last ones to be finished if several
#: processes share the work.
_FILES = sorted(Path(__file__).with_name("scenarios").glob("*.yaml"), key=lambda file: -file.stat().st_size)
#: Maximum number of accepted differences. It must not grow, except for exports of spans in JSON, to
#: which the protocol requires a response in JSON, for bodies that are not JSON, which stock MLflow
#: treats as empty, for aliases in searches of versions, and for responses of MCP servers and of
#: `server-info`, to which MLflow 3.18 has added fields.
_MOST_EXCUSED_STEPS = 560


_SCENARIOS = {file: load(file) for file in _FILES}
_IN_SAMPLES = [file for file in _FILES if not _SCENARIOS[file].slow]
_SAMPLED = [file for file in _FILES if _SCENARIOS[file].slow or not all(step.sampled for step in _SCENARIOS[file].steps)]


@pytest.mark.parametrize("file", _IN_SAMPLES, ids=lambda file: file.stem)
def test_answers_are_the_same(file: Path, request: pytest.FixtureRequest, record_property):
    _compare(_SCENARIOS[file], request, record_property, is_sample=True)


@pytest.mark.slow
@pytest.mark.parametrize("file", _SAMPLED, ids=lambda file: file.stem)
def test_all_answers_are_the_same(file: Path, request: pytest.FixtureRequest, record_property):
    _compare(_SCENARIOS[file], request, record_property, is_sample=False)


def _compare(whole: Scenario, request: pytest.FixtureRequest, record_property, is_sample: bool) -> None:
    scenario = whole.sample() if is_sample else whole
    prefix = "empty_" if scenario.fresh_servers else ""
    reference, subject = (request.getfixturevalue(prefix + side) for side in ("reference", "subject"))
    # No differences are accepted between two servers of stock MLflow.
    allowed = AllowList([] if subject_is_stock_mlflow() else load_entries(scenario.name))

    reports, requests = run(scenario, reference, subject, allowed.excuse)

    record_property(COMPARED, requests)
    record_property(EXCUSED, allowed.excused_steps)
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
    # If all steps are in the sample, the number has to match that of the whole scenario.
    miscounted = allowed.miscounted(is_sample=len(scenario.steps) < len(whole.steps))
    assert not miscounted, "entries that apply to another number of steps:\n" + "\n".join(miscounted)


def test_accepted_differences_are_of_existing_scenarios():
    assert {file.stem for file in DIRECTORY.glob("*.yaml")} <= {file.stem for file in _FILES}


def test_the_list_of_accepted_differences_does_not_grow():
    assert sum(entry.steps for file in _FILES for entry in load_entries(file.stem)) <= _MOST_EXCUSED_STEPS
