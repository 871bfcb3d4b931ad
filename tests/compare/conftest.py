"""Prints the number of compared and accepted responses at the end of a run, summed over all
processes.
"""

import pytest

#: Names of test properties: requests sent to both sides, and responses whose differences were
#: accepted.
COMPARED, EXCUSED = "requests compared", "differences accepted"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, [])]
    properties = [each for report in reports for each in getattr(report, "user_properties", [])]
    compared, excused = (sum(value for name, value in properties if name == wanted) for wanted in (COMPARED, EXCUSED))
    if compared:
        terminalreporter.write_line(f"{compared} requests sent to both servers, {excused} responses differ and are accepted")
