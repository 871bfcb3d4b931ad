"""Every scenario file is a test: both servers must give the same answers to its requests; `make test-slow` sends those, too, that are not sampled."""

from pathlib import Path

import pytest

from tests.compare.allowed import DIRECTORY, AllowList, load_entries
from tests.compare.conftest import COMPARED, EXCUSED
from tests.compare.runner import run
from tests.compare.scenario import Scenario, load
from tests.support.servers import subject_is_stock_mlflow

#: The largest first: where several processes share the work, the last of them does not wait for it.
_FILES = sorted(Path(__file__).with_name("scenarios").glob("*.yaml"), key=lambda file: -file.stat().st_size)
#: How many answers may differ and be accepted. It only ever gets smaller, but for exports of spans in JSON, which the protocol wants
#: answered in JSON, and for bodies that are not JSON, which stock MLflow takes for empty ones, and for aliases in searches of versions.
_MOST_EXCUSED_STEPS = 485


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
    # Two stock servers have no excuse for any difference.
    allowed = AllowList([] if subject_is_stock_mlflow() else load_entries(scenario.name))

    reports, requests = run(scenario, reference, subject, allowed.excuse)

    record_property(COMPARED, requests)
    record_property(EXCUSED, allowed.excused_steps)
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
    # Where all steps are sampled, the number is that of the whole.
    miscounted = allowed.miscounted(is_sample=len(scenario.steps) < len(whole.steps))
    assert not miscounted, "entries that apply to another number of steps:\n" + "\n".join(miscounted)


def test_accepted_differences_are_of_existing_scenarios():
    assert {file.stem for file in DIRECTORY.glob("*.yaml")} <= {file.stem for file in _FILES}


def test_the_list_of_accepted_differences_does_not_grow():
    assert sum(entry.steps for file in _FILES for entry in load_entries(file.stem)) <= _MOST_EXCUSED_STEPS
