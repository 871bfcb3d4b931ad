"""Counts what has been compared and says so at the end of the run."""

import pytest

#: Requests sent to both sides so far.
COMPARED = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COMPARED] = 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if compared := config.stash.get(COMPARED, 0):
        terminalreporter.write_line(f"{compared} requests answered by both servers")
