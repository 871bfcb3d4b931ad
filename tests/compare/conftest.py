"""Prints the number of compared and accepted responses at the end of a run, summed over all
processes.
"""

import os
from collections.abc import Iterator

import pytest

from tests.support.http import Side
from tests.support.next_release import form_reader, next_release
from tests.support.pair import FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT
from tests.support.servers import NextStockMlflow, start_subject

#: Names of test properties: requests sent to both sides, and responses whose differences were
#: accepted.
COMPARED, EXCUSED = "requests compared", "differences accepted"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, [])]
    properties = [each for report in reports for each in getattr(report, "user_properties", [])]
    compared, excused = (sum(value for name, value in properties if name == wanted) for wanted in (COMPARED, EXCUSED))
    if compared:
        terminalreporter.write_line(f"{compared} requests sent to both servers, {excused} responses differ and are accepted")


#: Runs the tests that use the next release in one process, so that its server is started only once.
NEXT_RELEASE = pytest.mark.xdist_group("next-release")


@pytest.fixture(scope="session")
def next_reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    release = next_release()
    environment = {"PYTHONPATH": os.pathsep.join(map(str, (release, form_reader())))}
    server = NextStockMlflow(tmp_path_factory.mktemp("next"), release, FIRST_EXPERIMENT_OF_REFERENCE, environment)
    yield Side("reference", server.url)
    server.stop()


@pytest.fixture(scope="session")
def next_subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """Yields the server under test for requests that leave MCP servers and skills behind, which the
    searches of other tests would find.
    """
    server = start_subject(tmp_path_factory.mktemp("next-subject"), in_memory=True, first_experiment_id=FIRST_EXPERIMENT_OF_SUBJECT)
    yield Side("subject", server.url)
    server.stop()
