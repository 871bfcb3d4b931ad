"""Tests that a busy hour of a team with `serve` costs what `docs/reference/cost.md` claims,
according to the lines in the log.
"""

import pytest

from bench.hour import lines_of
from tools.cost.hour import busy_hour, parts, said
from tools.cost.lines import bill
from tools.cost.write import read


@pytest.mark.slow
def test_an_hour_costs_by_its_lines_what_the_page_says() -> None:
    model, rows = read()
    hour = busy_hour(model)
    lines = lines_of(hour)
    by_lines, by_page = (sum(parts(cost).values()) for cost in (bill(model, {line: lines.count(line) for line in set(lines)}), said(model, rows, hour)))
    assert by_lines == pytest.approx(by_page, rel=0.05)
