"""Tests the section of `docs/measured/scale.md` about what breaks first, which `tools/cost` computes."""

import re

import pytest

from tools.cost import limits
from tools.cost.capacity import Row
from tools.cost.model import Model, data
from tools.cost.write import REPOSITORY, read

_PAGE = limits.PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def model() -> Model:
    return read()[0]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read()[1]


def test_the_section_is_what_the_script_writes(model: Model, rows: list[Row]) -> None:
    assert limits.written(model, rows) == _PAGE, "run `python3 -m tools.cost`"


def test_each_limit_is_reached_at_its_multiple(model: Model, rows: list[Row]) -> None:
    found = limits.limits(model, rows, _PAGE)
    assert len(found) == 12
    assert [one.times for one in found] == sorted(one.times for one in found)
    for one in found:
        limit, used = (float(text.split()[0].replace(",", "")) for text in (one.limit, one.used))
        assert limit / used == pytest.approx(one.times, rel=0.06), one


def test_a_busy_hour_by_hand(model: Model, rows: list[Row]) -> None:
    load, team = limits.busy_hour(model, rows), data("teams.json")["teams"][-1]
    # A run has 316 calls, a trace two, and a call of the UI is one.
    calls = team["runs"] * 316 + team["traces"] * 2 + team["pages"]
    assert load.calls == pytest.approx(calls * 5 / (730 * 3600))
    assert load.active == pytest.approx(team["runs"] * 5 / 730 * 300 / 3600)


def test_the_largest_team_reaches_no_limit(model: Model, rows: list[Row]) -> None:
    """Checks that the default limits leave room for twice the busy hour of the largest team."""
    assert limits.limits(model, rows, _PAGE)[0].times > 2


def test_the_gateway_accepts_the_modelled_loads(model: Model, rows: list[Row]) -> None:
    rate = float(limits.Template(REPOSITORY / "template.yaml").defaults["RequestRate"])
    sent = [float(found.replace(",", "")) for found in re.findall(r"^\| [\w,. ]+ \| ([\d,]+) \| [\d.]+% \|", _PAGE, re.MULTILINE)]
    assert len(sent) == 3 and max(sent) < rate


def test_the_slower_core_is_that_of_the_page_about_starts(model: Model, rows: list[Row]) -> None:
    starts = (REPOSITORY / "docs/measured/starts.md").read_text("utf-8")
    told = re.search(r"^Indexing one of these runs takes ([\d.]+) ms", starts, re.MULTILINE)
    assert told and float(told[1]) == model.assumed("ms to index a run")
    [row] = [row for row in rows if row.name.startswith("the indexer catches up, per run, in stream batches of 1,000 runs")]
    assert model.assumed("units to index a run") == pytest.approx(row.cold.reads + row.cold.writes - row.cold.indexes, abs=0.1)
    # By the rule on this core, calls take about the time that was measured there.
    cpu, slower = model.assumptions["cpu"], model.assumed("core of the load model")
    units = {"log-metric": 1, "log-batch of 10 metrics": 1, "log-batch of 1,000 points": 12, "create run": 1, "history of 1,000 points": 5, "latest 100 runs": 20}
    for call, read_or_written in units.items():
        measured = re.search(rf"^\| {call} \| ([\d.]+) \|", starts, re.MULTILINE)
        assert measured
        assert (cpu["ms a call"] + cpu["ms a unit"] * read_or_written) * slower > 0.85 * float(measured[1]), call


def test_the_guide_says_how_many_runs_an_hour_are_removed(model: Model, rows: list[Row]) -> None:
    guide = re.sub(r"\s+", " ", (REPOSITORY / "docs/guide/operate.md").read_text("utf-8"))
    told = re.search(r"about ([\d,]+) runs an hour", guide)
    assert told and float(told[1].replace(",", "")) == pytest.approx(limits.removable(model, rows), rel=0.1)
