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
#: How many answers may differ and be accepted. It only ever gets smaller, but for exports of spans in JSON: the protocol wants them answered in JSON.
_MOST_EXCUSED_STEPS = 455


_SAMPLED = [file for file in _FILES if not all(step.sampled for step in load(file).steps)]


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_answers_are_the_same(file: Path, request: pytest.FixtureRequest, record_property):
    _compare(load(file).sample(), request, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("file", _SAMPLED, ids=lambda file: file.stem)
def test_all_answers_are_the_same(file: Path, request: pytest.FixtureRequest, record_property):
    _compare(load(file), request, record_property)


def _compare(scenario: Scenario, request: pytest.FixtureRequest, record_property) -> None:
    prefix = "empty_" if scenario.fresh_servers else ""
    reference, subject = (request.getfixturevalue(prefix + side) for side in ("reference", "subject"))
    # Two stock servers have no excuse for any difference.
    allowed = AllowList([] if subject_is_stock_mlflow() else load_entries(scenario.name))

    reports, requests = run(scenario, reference, subject, allowed.excuse)

    record_property(COMPARED, requests)
    record_property(EXCUSED, allowed.excused_steps)
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
    assert not allowed.miscounted(), "entries that apply to another number of steps:\n" + "\n".join(allowed.miscounted())


def test_accepted_differences_are_of_existing_scenarios():
    assert {file.stem for file in DIRECTORY.glob("*.yaml")} <= {file.stem for file in _FILES}


def test_the_list_of_accepted_differences_does_not_grow():
    assert sum(entry.steps for file in _FILES for entry in load_entries(file.stem)) <= _MOST_EXCUSED_STEPS
