"""Compares responses with those of MLflow 3.18.0, for requests that 3.17.2 does not support."""

from pathlib import Path

import pytest

from tests.compare.allowed import AllowList
from tests.compare.conftest import COMPARED, NEXT_RELEASE
from tests.compare.runner import run
from tests.compare.scenario import load
from tests.support.http import Side

_FILES = sorted(Path(__file__).with_name("next_release").glob("*.yaml"))


@NEXT_RELEASE
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_answers_are_those_of_the_next_release(file: Path, next_reference: Side, subject: Side, record_property):
    reports, requests = run(load(file), next_reference, subject, AllowList([]).excuse)

    record_property(COMPARED, requests)
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
