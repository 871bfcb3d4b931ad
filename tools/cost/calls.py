"""Classifies the rows of the capacity pages, and computes their costs."""

import re
from dataclasses import dataclass

from tools.cost.capacity import Row, Units
from tools.cost.model import Cost, Model

#: Sections of rows that are not calls: the indexer's work, and commands.
WORK = re.compile(r"The indexer\b|Packing and |Deliveries ")
COMMANDS = re.compile(r"Permanent deletion")
#: Rows that are not calls, in sections of calls.
WORK_ROWS = re.compile(r"the indexer catches up|a pass that packs|two stream batches")
#: Authentication of a caller, before a call of another page is processed.
BESIDE = re.compile(r"capacity-access\.md")
#: Rows of several calls, with their number. All other rows are a single call.
COUNTS = {
    "create a logged model with 20 params, and finalize it": 2,
    "2,000 metric keys in two batches": 2,
    "rename a model with 1,000 versions, and read it": 2,
    "the ten spans of a trace one by one, by OTLP": 10,
    "ten spans one by one, each with tokens, by OTLP": 10,
    "a trace of ten spans and 5 KB": 2,
    "a trace of ten spans and 5 KB with a client request ID": 2,
    "a run of 4 tags, 5 params, and a batch of 10 metrics every second for five minutes": 307,
    "a job of 10,000 steps of 100 metrics, one per call (120 steps, times 83.33)": 1_000_000,
    "a job of 10,000 steps of 100 metrics in batches (1,200 steps, times 8.33)": 10_000,
}
#: Rows that are not repeated a million times. Their cost is given for one.
ONCE = re.compile(r"a job of |an hour of a run")


@dataclass(frozen=True)
class Priced:
    row: Row
    #: Number of repetitions that the costs are given for.
    times: int
    calls: int
    cold: Cost
    warm: Cost | None
    #: Including the indexer's work that the row causes.
    all_in: Cost | None


def priced(model: Model, row: Row) -> Priced:
    times = 1 if ONCE.match(row.name) else 1_000_000
    return Priced(
        row,
        times,
        calls(row),
        cost(model, row, row.cold) * times,
        cost(model, row, row.warm) * times if row.warm else None,
        with_indexer(model, row) * times if row.all_in else None,
    )


def calls(row: Row) -> int:
    """Returns the number of calls that a row describes, or 0 if the row describes background
    work."""
    if WORK.match(row.section) or COMMANDS.match(row.section) or WORK_ROWS.match(row.name) or BESIDE.match(row.page):
        return 0
    return COUNTS.get(row.name, 1)


def cost(model: Model, row: Row, units: Units, starts: float | None = None) -> Cost:
    if COMMANDS.match(row.section):
        return Cost(table=model.units(units))
    count = calls(row)
    if count:
        return model.call(units, row.bucket, count, starts)
    return model.work(units, model.memory if BESIDE.match(row.page) else None)


def with_indexer(model: Model, row: Row, starts: float | None = None) -> Cost:
    assert row.all_in
    beside = Units(
        max(0.0, row.all_in.requests - row.cold.requests),
        max(0.0, row.all_in.writes - row.cold.writes),
        max(0.0, row.all_in.reads - row.cold.reads),
    )
    return cost(model, row, row.cold, starts) + model.work(beside)
