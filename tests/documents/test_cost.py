"""Tests that `docs/reference/cost.md` is up to date, and that the script that writes it computes
what it documents.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tools.cost import stack
from tools.cost.calls import COUNTS, cost, priced
from tools.cost.capacity import Units, rows
from tools.cost.figures import figures
from tools.cost.hour import busy_hour, parts, said
from tools.cost.lines import Line, around_fields, bill, recorded
from tools.cost.lines import read as read_lines
from tools.cost.lines import write as write_lines
from tools.cost.model import MILLION, Model, data
from tools.cost.stored import stored, stored_run
from tools.cost.teams import find, teams
from tools.cost.write import PAGE, REPOSITORY, read, written

_TEMPLATE = REPOSITORY / "template.yaml"
_ROWS = rows(REPOSITORY / "docs/reference")


@pytest.fixture
def model() -> Model:
    return read()[0]


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text("utf-8") == written(), "run `python3 -m tools.cost`"


def test_the_page_has_each_call_of_the_capacity_pages() -> None:
    calls = [line.split(" | ")[0].strip("| ").removeprefix("**one:** ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert len(_ROWS) > 300
    for row in _ROWS:
        assert row.name in calls


def test_each_capacity_page_is_read() -> None:
    for path in (REPOSITORY / "docs/reference").glob("capacity*.md"):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| ") and not line.startswith("| call |")]
        assert len(lines) == sum(row.page == path.name for row in _ROWS)


def test_rows_of_several_calls_are_rows() -> None:
    names = {row.name for row in _ROWS}
    assert not COUNTS.keys() - names


def test_a_call_by_hand(model: Model) -> None:
    row = find(_ROWS, {"page": "capacity.md", "section": "Experiments", "row": "get experiment"})
    assert (row.cold.requests, row.cold.writes, row.cold.reads) == (1, 0, 1)
    cost = priced(model, row).cold
    assert cost.gateway == pytest.approx(1.00)
    assert cost.invocations == pytest.approx(0.20)
    assert cost.table == pytest.approx(0.125)
    # 5 ms for the request and 0.42 ms of CPU on 512 of 1769 MB are 6.45 ms, billed as 7. One call
    # in a hundred takes 100 ms more.
    assert cost.time == pytest.approx(8 * 0.5 * 0.0000133334 / 1000 * MILLION)
    assert cost.logs == pytest.approx(model.bytes_logged() / 1e9 * (0.50 + 0.03 * 0.15) * MILLION)
    assert cost.all == pytest.approx(1.00 + 0.20 + 0.125 + cost.time + cost.logs)


def test_requests_to_the_bucket_are_paid_for(model: Model) -> None:
    row = next(row for row in _ROWS if row.name.startswith("delete a directory of 1,000 files"))
    assert row.bucket == ["DELETE", "LIST", "POST"]
    assert priced(model, row).cold.bucket == pytest.approx(10.00)


def test_the_indexer_has_no_gateway(model: Model) -> None:
    row = find(_ROWS, {"page": "capacity.md", "section": "The indexer's work for a run", "row": "a new run, 4 tags"})
    cost = priced(model, row).cold
    assert cost.gateway == cost.invocations == cost.logs == 0
    assert cost.table > 0 and cost.time > 0


def test_many_requests_do_not_come_one_after_another(model: Model) -> None:
    few, many = model.ms(Units(requests=8), [], 1), model.ms(Units(requests=800), [], 1)
    assert few < many < 20 * few


def test_the_rule_for_the_cpu_is_near_what_was_measured(model: Model) -> None:
    cpu = model.assumptions["cpu"]
    for point in cpu["points"]:
        assert cpu["ms a call"] + cpu["ms a unit"] * point["units"] == pytest.approx(point["ms"], rel=0.15), point["call"]


def test_prices_say_where_they_are_from(model: Model) -> None:
    page = PAGE.read_text("utf-8")
    for name, price in model.prices["prices"].items():
        assert price["page"].startswith("https://aws.amazon.com/"), name
        assert price["seen"] is None or price["seen"].startswith("https://"), name
        line = next(line for line in page.splitlines() if f"| {price['per']} |" in line)
        assert ("**not verified**" in line) == (price["seen"] is None)


def test_assumptions_say_where_they_are_from(model: Model) -> None:
    for name, one in model.assumptions.items():
        assert one["basis"], name


def test_what_is_taken_from_benchmarks_is_near_them(model: Model) -> None:
    page = (REPOSITORY / "docs/measured/local-benchmark.md").read_text("utf-8")
    kilobytes = re.search(r"^- ([\d.]+) KB per run on disk", page, re.MULTILINE)
    stock = re.search(r"^\| log-batch, 100 metrics at a step \| (\d+) \|", page, re.MULTILINE)
    assert kilobytes and stock
    assert model.assumed("database: bytes of a run") == pytest.approx(float(kilobytes[1]) * 1000, rel=0.2)
    assert model.assumed("calls of a core") == pytest.approx(float(stock[1]), rel=0.2)


def test_stored_runs_are_those_of_the_plan() -> None:
    """The page of stored bytes measures runs with as many points as those of the teams."""
    page = (REPOSITORY / "docs/reference/stored-bytes.md").read_text("utf-8")
    run = stored_run()
    [whole] = re.findall(r"^\| \*\*table and indexes\*\* \| \d+ \| (\d+) \|$", page, re.MULTILINE)
    assert run.size(data("teams.json")["run"]["points"]) == pytest.approx(float(whole), rel=0.01)


def test_stored_points_have_about_the_bytes_that_reading_them_takes() -> None:
    points = find(_ROWS, {"page": "capacity.md", "section": "Large runs: long params, and a million points of one metric", "row": "the whole history of 1,000,000 points"})
    # A read unit is 4 KB. Points of long histories are in larger segments, which take less space, but
    # these points have noise in every bit, which takes more.
    of_reading = points.cold.reads * 4096 / MILLION
    assert of_reading / 2 < stored_run().point < 2 * of_reading


def test_the_database_of_the_server_has_bytes_of_its_own(model: Model) -> None:
    """Checks that the stack's bill follows from the measured bytes, and the server's from the assumed
    ones.
    """
    before = teams(model, _ROWS)[-1]
    model.assumptions["database: bytes of a run"] = {"value": 50_000}
    after = teams(model, _ROWS)[-1]
    assert after.server["database"] > before.server["database"]
    assert after.ours == before.ours
    plan = data("teams.json")
    runs = plan["months"] * before.runs * stored_run().size(plan["run"]["points"])
    traces = before.traces * (stored()["packed"].table + (plan["months"] - 1) * stored()["archived"].table)
    assert before.ours["table: storage and recovery"] == pytest.approx(model.kept(runs + traces))


def _changed(tmp_path: Path, old: str, new: str) -> Model:
    text = _TEMPLATE.read_text("utf-8")
    assert re.search(old, text, re.MULTILINE)
    changed = tmp_path / "template.yaml"
    changed.write_text(re.sub(old, new, text, flags=re.MULTILINE), "utf-8")
    return Model(stack.read(changed))


def test_the_template_counts(model: Model, tmp_path: Path) -> None:
    """One alarm less, twice the memory, a less frequent schedule and shorter log retention each
    change the costs.
    """
    row = _ROWS[0]
    assert _changed(tmp_path, r"^  ServerErrors:\n    Type: AWS::CloudWatch::Alarm", "  ServerErrors:\n    Type: AWS::SNS::Topic").alarms() == pytest.approx(model.alarms() - 0.40)
    assert priced(_changed(tmp_path, r"MemorySize: 512", "MemorySize: 1024"), row).cold.time > priced(model, row).cold.time
    rarer = _changed(tmp_path, r"rate\(1 minute\)", "rate(10 minutes)")
    assert rarer.stack.ticks == model.stack.ticks - 9 * 4_380
    assert rarer.ticks() < model.ticks() / 8
    assert _changed(tmp_path, r"(  LogRetention:\n(?:    .*\n)*?    Default: )30", r"\g<1>365").logged(1) > model.logged(1)
    on = _changed(tmp_path, r'(  AccessLogs:\n(?:    .*\n)*?    Default: )"off"', r'\1"on"')
    assert on.bytes_logged() == model.bytes_logged() + sum(map(len, model.assumptions["gateway line"]["value"]))
    faster = _changed(tmp_path, r"(  UsersRequestRate:\n(?:    .*\n)*?    Default: )100", r"\g<1>50")
    assert faster.refused().all == pytest.approx(model.refused().all / 2)
    without = _changed(tmp_path, r'(  Dashboard:\n(?:    .*\n)*?    Default: )"on"', r'\1"off"')
    assert (without.stack.dashboards, model.stack.dashboards) == (0, 1)
    assert _changed(tmp_path, r"SystemLogLevel: !Ref SystemLogLevel", "SystemLogLevel: INFO").bytes_logged() > model.bytes_logged() > 0


def test_alarms_that_are_off_by_default_are_not_paid_for(model: Model, tmp_path: Path) -> None:
    # ServerErrors has four metrics, two of them for the user API. IndexerLag has two metrics, and
    # each of the three other alarms has one.
    assert model.stack.alarm_metrics == 4 + 2 + 3
    with_more = _changed(tmp_path, r'(  MoreAlarms:\n(?:    .*\n)*?    Default: )"off"', r'\1"on"')
    assert with_more.stack.alarm_metrics == model.stack.alarm_metrics + 9
    assert model.stack.all_alarm_metrics == model.stack.alarm_metrics + 9


def test_the_idle_stack_is_the_one_that_a_deployment_creates(model: Model) -> None:
    """Checks that the page computes the stack that `make deploy` creates if no parameter is given."""
    settings = (REPOSITORY / "tools/deploy/settings.py").read_text("utf-8")
    of_new_stack = settings.split("def of_new_stack")[1].split("def ")[0]
    set_there = {name: value for name, value in re.findall(r'parameters\["(\w+)"\] = "(\w+)"', of_new_stack)}
    assert set_there == dict(stack.OF_A_NEW_STACK) == {"Users": "on"}
    assert stack.read(_TEMPLATE).alarm_metrics == model.stack.alarm_metrics
    assert Model(stack.Stack(**vars(model.stack) | {"alarm_metrics": 0})).idle() == pytest.approx(model.idle() - model.alarms())


def test_strangers_pay_for_no_more_than_the_rate_by_hand(model: Model) -> None:
    calls = 100 * 730 * 3600 / MILLION
    cost = model.refused()
    assert cost.gateway == pytest.approx(calls * 1.00)
    assert cost.invocations == pytest.approx(calls * 0.20)
    assert cost.table == pytest.approx(calls * 2 * 0.125)
    assert f"| **all** | **${cost.all:,.0f}** |" in PAGE.read_text("utf-8")


def test_the_table_class_by_hand(model: Model) -> None:
    # 100 GB cost $15 less, and reads and writes of $40 cost $10 more.
    assert model.infrequent(100e9, 40) == pytest.approx(-15 + 10)
    for team in teams(model, _ROWS):
        all_traces, month = team.infrequent
        # Old spans are in the bucket, so neither saves money.
        assert 0 < all_traces < month


def test_the_line_of_the_gateway_is_that_of_the_stages(model: Model) -> None:
    [line] = model.assumptions["gateway line"]["value"]
    formats = set(re.findall(r"Format: '(\{.*?\})'", _TEMPLATE.read_text("utf-8")))
    assert [json.loads(format_).keys() for format_ in formats] == [json.loads(line).keys()]


def test_the_first_three_dashboards_cost_nothing(model: Model) -> None:
    assert (model.stack.dashboards, model.dashboards()) == (1, 0)
    assert Model(replace(model.stack, dashboards=4)).dashboards() == model.price("dashboards")


def test_a_greater_team_pays_more(model: Model) -> None:
    bills = [sum(team.ours.values()) for team in teams(model, _ROWS)]
    assert bills == sorted(bills)
    for team in teams(model, _ROWS):
        # The cost of the gateway follows from the number of all calls.
        assert team.ours["gateway"] == pytest.approx(model.gateway(team.calls))
        assert sum(team.shorter[0].values()) < sum(team.ours.values())


def test_the_gateway_is_cheaper_beyond_300_million_calls(model: Model) -> None:
    assert model.gateway(301 * MILLION) == pytest.approx(300 + 0.90)


def test_an_hour_costs_by_its_lines_what_the_page_says(model: Model) -> None:
    """Computes the costs of the recorded lines of `bench/hour.py`. `test_hour.py` runs such an
    hour.
    """
    page, lines = (sum(parts(cost).values()) for cost in (said(model, _ROWS, busy_hour(model)), bill(model, recorded())))
    assert lines == pytest.approx(page, rel=0.05)


def test_lines_are_read_as_functions_and_the_local_server_write_them(tmp_path: Path) -> None:
    as_json = (
        '{"level":"INFO","fields":{"message":"request","route":"POST /api/2.0/mlflow/runs/log-batch","status":200,"ms":6.2,"requests":2,'
        '"read_units":0.5,"write_units":2.0,"caller":"8b2a1f0c9d3e"},"target":"request"}'
    )
    as_text = (
        '2030-01-31T12:00:00.000000Z  INFO request: request route="POST /api/2.0/mlflow/runs/log-batch" status=200 ms=6.2 requests=2 '
        'read_units=0.5 write_units=2.0 caller="8b2a1f0c9d3e"'
    )
    # A function's line is counted with its full length, including what surrounds the fields.
    in_a_span = as_json.replace('"target":"request"', '"target":"request","span":{"requestId":"6d68ca91-49c9-448d-89b8-7ca3e6dc66aa","name":"Lambda runtime invoke"}')
    [longer] = read_lines(in_a_span)
    assert (longer.route, longer.size) == ("POST /api/2.0/mlflow/runs/log-batch", len(in_a_span))
    fields = as_json.removeprefix('{"level":"INFO","fields":').removesuffix(',"target":"request"}')
    expected = Line("POST /api/2.0/mlflow/runs/log-batch", 2, 0.5, 2.0, around_fields() + len(fields))
    other = '2030-01-31T12:00:00.000000Z  INFO request: request route="stream" ms=6.2 requests=9 read_units=4.0 write_units=13.0'
    found = list(read_lines("\n".join([as_json, as_text, "a line of something else", other])))
    assert found[:2] == [replace(expected, size=len(as_json)), expected]
    assert (found[2].is_call, found[2].requests, found[2].reads, found[2].writes) == (False, 9, 4.0, 13.0)
    write_lines(tmp_path / "lines.tsv", [expected, *found[1:]])
    assert recorded(tmp_path / "lines.tsv") == {expected: 2, found[2]: 1}


def test_a_longer_line_of_functions_costs_more_everywhere(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that both computations get the length of a function's line from one assumption."""
    page, lines = said(model, _ROWS, busy_hour(model)), bill(model, recorded())
    assumptions = data("assumptions.json")
    [line] = assumptions["own lines"]["value"]
    assumptions["own lines"]["value"] = [line.removesuffix("}") + ',"span":"' + "x" * 300 + '"}']
    monkeypatch.setattr("tools.cost.model.data", lambda name: assumptions if name == "assumptions.json" else data(name))
    monkeypatch.setattr("tools.cost.lines.data", lambda name: assumptions)
    longer = read()[0]
    more = (said(longer, _ROWS, busy_hour(longer)).logs - page.logs, bill(longer, recorded()).logs - lines.logs)
    calls = sum(times for line, times in recorded().items() if line.is_call)
    assert more == pytest.approx((more[1], calls * model.logged(len(',"span":""') + 300)), rel=0.02)


def test_a_line_by_hand(model: Model) -> None:
    """A repeated line costs its units again. A line of the indexer involves no gateway and no HTTP
    request.
    """
    [own] = model.assumptions["own lines"]["value"]
    call, work = Line("GET /x", 1, 1, 0, len(own)), Line("stream", 1, 0, 4, 150)
    row = find(_ROWS, {"page": "capacity.md", "section": "Experiments", "row": "get experiment"})
    without_starts = cost(model, row, row.cold, starts=0)
    assert bill(model, {call: 3}).all == pytest.approx(3 * without_starts.all)
    assert bill(model, {work: 1}).table == pytest.approx(4 * 0.625 / MILLION)
    assert bill(model, {work: 1}).gateway == bill(model, {work: 1}).logs == 0


def test_figures_are_amounts(model: Model) -> None:
    for name, figure in figures(model, _ROWS).items():
        assert re.fullmatch(r"\$\d[\d,]*(\.\d+)?", figure), name


def test_a_slower_core_takes_longer(model: Model) -> None:
    call, slower = Units(requests=2, writes=1, reads=1), model.on_a_slower_core()
    assert slower.ms(call, [], 1) > model.ms(call, [], 1) + 4
    # All other costs are equal.
    assert slower.call(call).table == model.call(call).table


def test_the_indexer_computes_on_a_whole_core(model: Model) -> None:
    assert (model.memory, model.background_memory) == (512, 1769)
    units = Units(writes=1000)
    computed = model.assumptions["cpu"]["ms a unit"] * 1000
    assert model.ms(units, [], 0, model.background_memory) == pytest.approx(computed)
    # Computing costs the same with any memory of up to a whole core, because less memory takes
    # proportionally longer.
    assert model.work(units).time == pytest.approx(model.work(units, model.memory).time)
