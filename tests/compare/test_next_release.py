"""Compares responses with those of MLflow 3.18.0, for requests that 3.17.2 does not support."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compare.allowed import AllowList
from tests.compare.conftest import COMPARED
from tests.compare.runner import run
from tests.compare.scenario import load
from tests.support.http import Side
from tests.support.next_release import next_release
from tests.support.pair import FIRST_EXPERIMENT_OF_REFERENCE
from tests.support.servers import NextStockMlflow

_FILES = sorted(Path(__file__).with_name("next_release").glob("*.yaml"))


@pytest.fixture(scope="module")
def next_reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    server = NextStockMlflow(tmp_path_factory.mktemp("next"), next_release(), FIRST_EXPERIMENT_OF_REFERENCE)
    yield Side("reference", server.url)
    server.stop()


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_answers_are_those_of_the_next_release(file: Path, next_reference: Side, subject: Side, record_property):
    reports, requests = run(load(file), next_reference, subject, AllowList([]).excuse)

    record_property(COMPARED, requests)
    assert not reports, f"{len(reports)} steps differ:\n\n" + "\n\n".join(reports)
