"""Every scenario file is a test: both servers must give the same answers to all of its requests."""

from pathlib import Path

import pytest

from tests.compare.allowed import AllowList, load_entries
from tests.compare.conftest import COMPARED
from tests.compare.runner import run
from tests.compare.scenario import load
from tests.support.servers import subject_is_stock_mlflow

_FILES = sorted(Path(__file__).with_name("scenarios").glob("*.yaml"))


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_answers_are_the_same(file: Path, request: pytest.FixtureRequest):
    scenario = load(file)
    prefix = "empty_" if scenario.fresh_servers else ""
    reference, subject = (request.getfixturevalue(prefix + side) for side in ("reference", "subject"))
    # Two stock servers have no excuse for any difference.
    entries = [] if subject_is_stock_mlflow() else load_entries()
    allowed = AllowList([entry for entry in entries if entry.scenario == scenario.name])

    reports, requests = run(scenario, reference, subject, allowed.excuse)

    request.config.stash[COMPARED] += requests
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
    assert not allowed.unneeded(), f"allowed.yaml has entries that match no difference: {allowed.unneeded()}"


def test_allow_list_names_existing_scenarios():
    unknown = {entry.scenario for entry in load_entries()} - {file.stem for file in _FILES}
    assert not unknown
