"""A team's busy hour: its requests, and their cost according to the page."""

from dataclasses import dataclass, replace
from typing import Any

from tools.cost.calls import cost, with_indexer
from tools.cost.capacity import Row
from tools.cost.model import Cost, Model, data
from tools.cost.stack import HOURS
from tools.cost.teams import find

#: Index of the smallest of the three teams. Its busy hour has enough runs, traces and pages of the
#: UI.
_TEAM = 0
KINDS = {"run": "runs", "trace": "traces", "page": "pages"}


@dataclass(frozen=True)
class Hour:
    """Numbers of users, runs, traces and pages of the UI."""

    people: int
    runs: int
    traces: int
    pages: int


def busy_hour(model: Model) -> Hour:
    team = data("teams.json")["teams"][_TEAM]
    amounts = {kind: round(team[kind] * model.assumed("busy") / HOURS) for kind in KINDS.values()}
    return Hour(team["people"], **amounts)


def said(model: Model, rows: list[Row], hour: Hour) -> Cost:
    """Returns the cost of an hour according to the page, limited to the costs that the log lines
    of requests and of the indexer cover."""
    plan: dict[str, Any] = data("teams.json")
    total = Cost()
    for kind, amount in KINDS.items():
        for one in [*plan[kind]["calls"], *plan[kind].get("work", [])]:
            row = find(rows, one)
            each = with_indexer(model, row, starts=0) if row.all_in else cost(model, row, row.cold, starts=0)
            total += each * (one["times"] * getattr(hour, amount))
    return replace(total, bucket=0)


def parts(cost: Cost) -> dict[str, float]:
    return {"gateway": cost.gateway, "Lambda": cost.invocations + cost.time, "logs": cost.logs, "table": cost.table}
