"""Counts what has been compared and accepted, and says so at the end of the run, however many processes have run it."""

import pytest

#: Properties of a test: requests sent to both sides, and answers that differ and were accepted.
COMPARED, EXCUSED = "requests compared", "differences accepted"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, [])]
    properties = [each for report in reports for each in getattr(report, "user_properties", [])]
    compared, excused = (sum(value for name, value in properties if name == wanted) for wanted in (COMPARED, EXCUSED))
    if compared:
        terminalreporter.write_line(f"{compared} requests answered by both servers, {excused} answers differ and are accepted")
