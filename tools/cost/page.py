"""The page `docs/reference/cost.md`."""

from collections.abc import Iterable
from itertools import groupby

from tools.cost.calls import COMMANDS, Priced, priced
from tools.cost.capacity import Row
from tools.cost.figures import dollars, price, summary, whole
from tools.cost.hour import busy_hour, parts, said
from tools.cost.lines import bill, recorded
from tools.cost.model import MILLION, Model, data
from tools.cost.teams import Team, teams

_HEAD = """\
# What it costs

Written by `python3 -m tools.cost`, which `make docs` calls; do not edit. It multiplies three things:

- units of the table, from the capacity pages ([tracking](capacity.md), [evaluation](capacity-evaluation.md), [traces](capacity-traces.md),
  [model registry](capacity-registry.md), [GraphQL](capacity-graphql.md), [artifacts](capacity-artifacts.md), [users](capacity-access.md)): metered by tests;
- what the stack has, from `template.yaml`: memory, alarms, schedules, days of logs;
- [prices](#prices) and [assumptions](#assumptions), from `tools/cost/`.

Dollars, in {region}, without any free tier, discounts and taxes. Your bill differs where your use does. Nothing here was read off a bill.
"""


def page(model: Model, rows: list[Row]) -> str:
    parts = [
        _HEAD.format(region=model.prices["region"]),
        _short(model, rows),
        _teams(model, teams(model, rows)),
        _idle(model),
        _hour(model, rows),
        _million(model),
        *_calls(model, rows),
        _prices(model),
        _assumptions(model),
        _left_out(),
    ]
    return "\n".join(parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _short(model: Model, rows: list[Row]) -> str:
    table = _table(
        ("a million", "gateway", "Lambda", "logs", "table", "all"),
        (
            (name, dollars(cost.gateway), dollars(cost.invocations + cost.time), dollars(cost.logs), dollars(cost.table), f"**{dollars(cost.all)}**")
            for name, cost in summary(model, rows).items()
        ),
    )
    return f"""\
## In short

{table}
Batches and traces are with what the indexer does about them. Each is a call on its own; a process that was asked for the same shortly
before reads less ([all calls](#a-million-of-each-call)).
"""


def _teams(model: Model, three: list[Team]) -> str:
    plan = data("teams.json")
    run = plan["run"]
    batches = sum(one["times"] for one in run["calls"] if one["row"].startswith("log_batch of all 10"))
    kinds = list(three[0].ours)
    server_kinds = list(three[0].server)
    rows = [
        ("runs", *(f"{team.runs:,}" for team in three)),
        ("traces", *(f"{team.traces:,}" for team in three)),
        ("calls of UI pages", *(f"{team.pages:,}" for team in three)),
        ("calls in all", *(f"{round(team.calls, -3):,.0f}" for team in three)),
        *((kind, *(dollars(team.ours[kind]) for team in three)) for kind in kinds),
        ("**this stack**", *(f"**{whole(sum(team.ours.values()))}**" for team in three)),
        *((f"always on: {kind}", *(dollars(team.server[kind]) for team in three)) for kind in server_kinds),
        ("**`mlflow server`, always on (estimate)**", *(f"**{whole(sum(team.server.values()))}**" for team in three)),
        ("traces kept for a month only: this stack", *(whole(sum(team.shorter[0].values())) for team in three)),
        ("traces kept for a month only: always on", *(whole(sum(team.shorter[1].values())) for team in three)),
    ]
    names = {"run": "a run", "trace": "a trace", "page": "a UI call"}
    parts = "".join(f"- {names[name]}: {'; '.join(_asked(one) for one in plan[name]['calls'])}.\n" for name in names)
    made = "".join(f"- {team.people:,} people: {team.parts}.\n" for team in three)
    return f"""\
## Three teams, a month

{_table(("", *(f"{team.people:,} people" for team in three)), rows)}
The month is the {_ordinal(plan["months"])}: storage is of what all {plan["months"]} months brought, since nothing is removed by default. Traces may be
kept for a shorter time ([operator guide](../guide/operator-guide.md#how-long-traces-are-kept)): the last two rows. How many runs, traces and calls
teams have is assumed. So is what each of them asks for:

{parts}
A run logs {batches} batches of 10 metrics, one a second, and {run["files"]} files of {run["bytes of a file"] // 1000} KB through the server. Its indexing is counted in. The UI is called by users who signed in.
Models and other large files come on top, here and there alike: {price(model.price("bucket"))} a GB and month.

The server that is always on is an **estimate**, of parts that seem right and were not tried:

{made}
In front is a load balancer with two public addresses. The tasks of the largest team are as many as carry a busy hour
([assumptions](#assumptions)); no such server was loaded. The database is taken to hold as many bytes as the table. Logs, NAT gateways and
backups beyond the database's own size are left out, and so is the work of running it. Bucket and bytes sent are the same on both sides.
"""


def _asked(one: dict[str, object]) -> str:
    times = one["times"]
    share = f"{times:.0%} " if isinstance(times, float) else "" if times == 1 else f"{times} × "
    return share + str(one["row"]).partition("; bucket")[0]


def _ordinal(number: int) -> str:
    return {12: "twelfth"}.get(number, f"{number}th")


def _idle(model: Model) -> str:
    stack = model.stack
    off = stack.all_alarm_metrics - stack.alarm_metrics
    more = f" Alarms that are off by default (`MoreAlarms`, `Users`) are of {off} more." if off else ""
    rows = [
        ("alarms", f"{stack.alarm_metrics} metrics × {price(model.price('alarms'))}", dollars(model.alarms())),
        ("schedules", f"{stack.ticks:,} calls of the indexer and the housekeeper", dollars(model.ticks())),
        ("dashboard", f"{stack.dashboards}, of the three that an account has for nothing; a fourth is {price(model.price('dashboards'))}", dollars(model.dashboards())),
        ("**all**", "", f"**{dollars(model.idle())}**"),
    ]
    names = ", ".join(f"`{name}`" for name in stack.metrics)
    return f"""\
## Idle, a month

{_table(("", "", "dollars"), rows).replace("| --- | ---: | ---: |", "| --- | --- | ---: |")}
What is stored comes on top: {price(model.price("table"))} a GB of the table, {price(model.price("recovery"))} for its point-in-time recovery, {price(model.price("bucket"))} a GB of the bucket.{more}
With `Users=on`, the second API costs nothing until it is called, and then as much as the first.

Metrics of its own, made of log lines: {names}. Each costs {price(model.price("metrics"))} a month if it has a value in each hour. These have one only when something is wrong.
An account has ten metrics of alarms and ten metrics free. The page counts both all the same.
"""


def _hour(model: Model, rows: list[Row]) -> str:
    hour = busy_hour(model)
    lines, page = parts(bill(model, recorded())), parts(said(model, rows, hour))
    compared = [(name, f"${page[name]:.4f}", f"${lines[name]:.4f}", f"{lines[name] / page[name] - 1:+.1%}") for name in page]
    whole_page, whole_lines = sum(page.values()), sum(lines.values())
    compared.append(("**all**", f"**${whole_page:.4f}**", f"**${whole_lines:.4f}**", f"**{whole_lines / whole_page - 1:+.1%}**"))
    calls = sum(times for line, times in recorded().items() if line.is_call)
    return f"""\
## An hour by its lines

Functions log a [line for each request](../guide/operator-guide.md#a-line-for-each-request), and for each
batch that the indexer takes. So a log says what its requests cost
(`python3 -m tools.cost.lines FILE`). `bench/hour.py` lets {hour.people} people have a busy hour with `serve`:
{hour.runs} runs, {hour.traces} traces and {hour.pages} UI calls, {model.assumed("busy")} times those of a mean hour. Its {calls:,} calls, and
what the indexer did about them, left the lines in `tools/cost/hour.tsv`:

{_table(("", "by the tables above", "by the lines", "difference"), compared)}
The hour's runs go on at the same time, each in an experiment of its own. People look at an
experiment where nothing runs: [searches](capacity.md) cost more where many runs go on. No line has
starts, files of the bucket, storage, and calls of the indexer by the stream. Both sides leave them
out.
"""


def _million(model: Model) -> str:
    start = model.assumed("starts")
    return f"""\
## A million of each call

A million calls of any kind cost {price(model.price("gateway"))} for the gateway, {price(model.price("invocations"))} for Lambda's requests and {dollars(model.logged(model.bytes_logged()) * MILLION)} for {model.bytes_logged()} bytes of logs each.
That is in the column **all**, and so are the starts of processes ({start:.0%} of calls).

- **Gateway**: an HTTP API counts a request again for each further 512 KB begun. A file of 4.5 MB sent through the server counts as 9.
- **Table**: reads, and writes with those of the indexes.
- **Time**: Lambda's, of {model.memory} MB on arm64. It is computed from requests and units ([assumptions](#assumptions)), not measured in AWS.
- **All** is of calls on their own (**cold** on the capacity pages), **warm** of calls shortly after such ones. **All in** has the indexer's
  time and units besides, where they are metered together. Elsewhere they are rows of their own.
- What is no call (the indexer's work, `gc`, and finding out who calls) has no gateway, no requests and no logs. `gc` runs on a machine of yours.
"""


def _calls(model: Model, rows: list[Row]) -> Iterable[str]:
    for (name, section), group in groupby(rows, key=lambda row: (row.page, row.section)):
        found = [priced(model, row) for row in group]
        head, cells = _columns(found)
        yield f"### {_title(name)}: {section}\n\n{_table(head, cells)}"


def _columns(found: list[Priced]) -> tuple[list[str], list[list[str]]]:
    """The columns that a section has something for."""
    bucket = any(one.row.bucket for one in found)
    warm = any(one.warm for one in found)
    all_in = any(one.all_in for one in found)
    time = not all(COMMANDS.match(one.row.section) for one in found)
    head = ["a million, unless the row says otherwise", "calls", "table"]
    head += ["time"] * time + ["bucket"] * bucket + ["all"] + ["warm"] * warm + ["all in"] * all_in
    rows = []
    for one in found:
        what = one.row.name if one.times > 1 else f"**one:** {one.row.name}"
        cells = [what, f"{one.calls:,}" if one.calls else "none", dollars(one.cold.table)]
        cells += [dollars(one.cold.time)] * time + [dollars(one.cold.bucket)] * bucket + [f"**{dollars(one.cold.all)}**"]
        cells += [dollars(one.warm.all) if one.warm else ""] * warm + [dollars(one.all_in.all) if one.all_in else ""] * all_in
        rows.append(cells)
    return head, rows


def _title(page: str) -> str:
    titles = {"capacity.md": "Tracking", "capacity-access.md": "Users", "capacity-graphql.md": "GraphQL", "capacity-registry.md": "Model registry"}
    return titles.get(page, page.removeprefix("capacity-").removesuffix(".md").capitalize())


def _prices(model: Model) -> str:
    rows = []
    for one in model.prices["prices"].values():
        seen = f"[here]({one['seen']})" if one["seen"] else "**not verified**"
        rows.append((price(one["dollars"]), one["per"], f"[AWS]({one['page']})", seen))
    return f"""\
## Prices

On demand, in {model.prices["region"]}. AWS's pages fill in their amounts by script. So most were read elsewhere,
in stored copies, on {model.prices["read"]}. The last column says where. An amount that is not verified was found
in no source with AWS's own words. Check the current ones before you rely on them.

{_table(("dollars", "for a", "AWS's page", "amount seen"), rows).replace("| --- | ---: | ---: | ---: |", "| ---: | --- | --- | --- |")}"""


def _assumptions(model: Model) -> str:
    cpu = model.assumptions["cpu"]
    rows = [("CPU", f"{cpu['ms a call']} ms a call, {cpu['ms a unit']} ms a unit read or written, indexes aside", cpu["basis"])]
    for name, one in model.assumptions.items():
        if name != "cpu":
            rows.append((name, _shown(one["value"]), one["basis"]))
    table = _table(("", "value", "where from"), rows).replace("| --- | ---: | ---: |", "| --- | --- | --- |")
    return f"""\
## Assumptions

How long a call takes was not measured in AWS. It is computed: the requests to the table that it waits for, and its CPU on the part of a core that {model.memory} MB have.

{table}"""


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"{sum(len(line.encode()) for line in value)} bytes" if value else "none"
    if isinstance(value, float) and value < 1:
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, (int, float)) else value or "none"


def _left_out() -> str:
    return """\
## What is left out

- Requests that clients send to the bucket by URLs that the server signed: one for each file, or for each part of it.
- The queue of changes that were not indexed: it has messages only after a failure.
- Versions of files that were overwritten or deleted: the bucket keeps and is paid for them for 30 days ([deletion.md](../guide/deletion.md)).
- Queries of logs, notifications of alarms, KMS keys, custom domains, traffic between regions.
- Calls that the client repeats because they were throttled.
"""
