"""Computes a month's cost of three teams, with this stack and with a server that is always on."""

import math
from dataclasses import dataclass
from typing import Any

from tools.cost.calls import calls, cost, with_indexer
from tools.cost.capacity import Row
from tools.cost.model import GB, MILLION, Cost, Model, data
from tools.cost.stack import HOURS
from tools.cost.stored import stored, stored_run

#: Dollars by category.
Bill = dict[str, float]


@dataclass(frozen=True)
class Use:
    """Requests of a run, a trace or a page of the UI."""

    cost: Cost
    calls: float


@dataclass(frozen=True)
class Team:
    people: int
    runs: int
    traces: int
    pages: int
    calls: float
    ours: Bill
    server: Bill
    #: Description of the server's components.
    parts: str
    #: Bills of the stack and the server if traces are kept for one month only.
    shorter: tuple[Bill, Bill]
    #: Difference of the stack's bills with the table class for infrequent access: with all traces,
    #: and with those of one month.
    infrequent: tuple[float, float]


def teams(model: Model, rows: list[Row]) -> list[Team]:
    plan = data("teams.json")
    uses = {name: use(model, rows, plan[name]) for name in ("run", "trace", "page")}
    return [_team(model, rows, plan, uses, team) for team in plan["teams"]]


def use(model: Model, rows: list[Row], plan: dict[str, Any]) -> Use:
    total, count = Cost(), 0.0
    for one in [*plan["calls"], *plan.get("work", [])]:
        row = find(rows, one)
        total += (with_indexer(model, row) if row.all_in else cost(model, row, row.cold)) * one["times"]
        count += calls(row) * one["times"]
    return Use(total, count)


def find(rows: list[Row], named: dict[str, Any]) -> Row:
    found = [row for row in rows if (row.page, row.section, row.name) == (named["page"], named["section"], named["row"])]
    assert len(found) == 1, f"{len(found)} rows of the capacity pages are {named}"
    return found[0]


def _team(model: Model, rows: list[Row], plan: dict[str, Any], uses: dict[str, Use], team: dict[str, Any]) -> Team:
    asked = Use(Cost(), 0)
    for use_, amount in ((uses["run"], team["runs"]), (uses["trace"], team["traces"]), (uses["page"], team["pages"])):
        asked = Use(asked.cost + use_.cost * amount, asked.calls + use_.calls * amount)
    pages = uses["page"].calls * team["pages"]
    ours, server, parts = _bills(model, rows, plan, team, asked, pages, plan["months"])
    short, server_short, _ = _bills(model, rows, plan, team, asked, pages, 1)
    removal = team["traces"] * model.assumed("write units to remove a trace") * model.price("writes") / MILLION
    short["table: reads and writes"] += removal
    kept = model.price("table") + model.price("recovery")
    infrequent = [model.infrequent(bill["table: storage and recovery"] / kept * GB, bill["table: reads and writes"]) for bill in (ours, short)]
    return Team(team["people"], team["runs"], team["traces"], team["pages"], asked.calls, ours, server, parts, (short, server_short), (infrequent[0], infrequent[1]))


def archive(model: Model, rows: list[Row], plan: dict[str, Any]) -> Cost:
    """Returns the cost of archiving a trace: its share of a block, which becomes one object."""
    row = find(rows, plan["trace"]["archive"])
    objects = model.price("bucket writes") / MILLION / model.assumed("traces of a block")
    return cost(model, row, row.cold) + Cost(bucket=objects)


def _bills(model: Model, rows: list[Row], plan: dict[str, Any], team: dict[str, Any], asked: Use, pages: float, trace_months: int) -> tuple[Bill, Bill, str]:
    """Returns the bill of the stack, the bill of the server, and the server's components. Traces
    are kept for `trace_months`.
    """
    total, count = asked.cost, asked.calls
    months, run = plan["months"], plan["run"]
    runs = months * team["runs"]
    recent = min(trace_months, plan["trace"]["months before archiving"])
    old = (trace_months - recent) * team["traces"]
    bytes_ = stored()
    size = runs * stored_run().size(run["points"]) + recent * team["traces"] * bytes_["packed"].table + old * bytes_["archived"].table
    in_database = model.assumed("database: bytes of a run") + run["points"] * model.assumed("database: bytes of a point")
    database = runs * in_database + trace_months * team["traces"] * model.assumed("database: bytes of a trace")
    kept = runs * run["files"] * run["bytes of a file"] + old * bytes_["archived"].archive
    files = kept / GB * model.price("bucket")
    archiving = Cost()
    if old:
        archiving = archive(model, rows, plan) * team["traces"]
    sent = ((count - pages) * model.assumed("bytes of an answer") + pages * model.assumed("bytes of a page")) / GB * model.price("out")
    # Upper bound: every call except those of pages changes something that reaches the indexer.
    gathered = model.gatherings(count - pages)
    ours = {
        "gateway": model.gateway(count),
        "Lambda": total.invocations + total.time + archiving.time + gathered * model.price("invocations") / MILLION,
        "logs": total.logs + gathered * model.logged(model.bytes_logged()),
        "table: reads and writes": total.table + archiving.table,
        "table: storage and recovery": model.kept(size),
        "bucket: requests": total.bucket + archiving.bucket,
        "bucket: storage": files,
        "sent out of AWS": sent,
        "alarms, schedule": model.idle(),
    }
    server, parts = _server(model, team["server"], count, database)
    server |= {"bucket: requests": total.bucket, "bucket: storage": (kept - old * bytes_["archived"].archive) / GB * model.price("bucket")}
    same = {"sent out of AWS": sent}
    return ours, server | same, parts


def _server(model: Model, plan: dict[str, Any], calls: float, size: float) -> tuple[Bill, str]:
    a_second = calls / HOURS / 3600
    cores, memory, zones = plan["cores"], plan["memory"], plan["zones"]
    tasks = plan["tasks"] or math.ceil(a_second * model.assumed("busy") / model.assumed("calls of a core") / cores)
    stored = plan["GB"] or math.ceil(size / GB)
    bill = {
        "Fargate": tasks * HOURS * (cores * model.price("cores") + memory * model.price("memory")),
        # A capacity unit handles 25 new connections per second, and each call counts as one. There
        # are two zones with an address each.
        "load balancer": HOURS * (model.price("balancer") + a_second / 25 * model.price("balanced") + 2 * model.price("addresses")),
        "database": zones * (HOURS * model.price(plan["database"]) + stored * model.price("database")),
    }
    several = "tasks" if tasks > 1 else "task"
    where = "in two zones" if zones == 2 else "in one zone"
    return bill, f"{tasks} {several} of {cores} vCPU and {memory} GB, `{plan['database']}` {where} with {stored:,} GB"
