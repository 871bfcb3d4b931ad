"""Computes what breaks first under load: limits, as multiples of the largest team's busy hour. Generates
the last section of `docs/measured/scale.md`, below what `make scale` writes.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.cost.calls import calls
from tools.cost.capacity import Row, Units
from tools.cost.model import Model, data
from tools.cost.stack import HOURS, Template
from tools.cost.teams import find

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/measured/scale.md"
_TITLE = "## What breaks first"
#: Number of runs whose removal is a row of the capacity pages.
_REMOVED = 100


@dataclass(frozen=True)
class Load:
    """A busy hour of the largest team, per second."""

    people: int
    calls: float
    writes: float
    reads: float
    #: Average number of sandboxes that handle requests at the same time.
    sandboxes: float
    #: Runs that begin per second, and runs that are active at the same time.
    runs: float
    active: float


@dataclass(frozen=True)
class Limit:
    name: str
    limit: str
    used: str
    #: Multiple of the load at which the limit is reached.
    times: float
    remedy: str


def busy_hour(model: Model, rows: list[Row]) -> Load:
    plan = data("teams.json")
    team = plan["teams"][-1]
    a_second = model.assumed("busy") / HOURS / 3600
    made, ms, writes, reads = 0.0, 0.0, 0.0, 0.0
    for kind, amount in (("run", "runs"), ("trace", "traces"), ("page", "pages")):
        for one in [*plan[kind]["calls"], *plan[kind].get("work", [])]:
            row = find(rows, one)
            times = one["times"] * team[amount] * a_second
            units: Units = row.all_in or row.cold
            writes += units.writes * times
            reads += units.reads * times
            if count := calls(row):
                made += count * times
                ms += model.ms(row.cold, row.bucket, count) * times
    runs = team["runs"] * a_second
    # A run logs a batch per second.
    return Load(team["people"], made, writes, reads, ms / 1000, runs, runs * plan["run"]["batches"])


def limits(model: Model, rows: list[Row], scale: str) -> list[Limit]:
    """Returns the limits in the order in which a growing load reaches them. `scale` is the page
    with the measurements of `make scale`."""
    load, quotas = busy_hour(model, rows), {name: one["value"] for name, one in data("limits.json").items()}
    rate = float(Template(REPOSITORY / "template.yaml").defaults["RequestRate"])
    long_runs, short_runs = _section(scale, "runs that log"), _section(scale, "short runs a second")
    lease = float(_constant("shared/http/permissions/src/item_cache.rs", r"Duration::from_millis\((\d+)\)"))
    cache_reads = load.sandboxes * 1000 / lease
    later_shards, later_writes = _partition(long_runs, "LATER#")
    later = later_writes / _first_number(long_runs)
    _, experiment = _partition(short_runs, "EXP#")
    a_run = experiment / _first_number(short_runs)
    indexer = _first_number(short_runs) / _busy(short_runs)
    removed = removable(model, rows)
    found = [
        _limit("requests to the API for signed requests", rate, load.calls, "a second", "Raise `RequestRate`."),
        _limit("write units of a new table", quotas["writes of a new table"], load.writes, "a second", "Prepare the table with more throughput before the load begins."),
        _limit("requests to the gateway", quotas["gateway"], load.calls, "a second", "Request a higher quota."),
        _limit("requests to the gateway in some regions", quotas["gateway, small regions"], load.calls, "a second", "Request a higher quota."),
        _limit("requests to Lambda", quotas["sandboxes"] * quotas["requests of a sandbox"], load.calls, "a second", "The quota grows with that of concurrent executions."),
        _limit("concurrent executions", quotas["sandboxes"], load.sandboxes, "at once", "Request a higher quota."),
        _limit("write units of the table", quotas["writes of a table"], load.writes, "a second", "Request a higher quota, or use several stacks."),
        _limit(
            "reads of one user's item, if all calls use the same token",
            quotas["reads of a partition"],
            cache_reads,
            "read units a second",
            "Use several service users. Each sandbox reads the item every " + f"{lease:g} ms.",
        ),
        _limit(
            "postponed runs (`LATER#`)",
            later_shards * quotas["writes of a partition"] / later,
            load.active,
            "active runs",
            "Raise `RunIndexingInterval`. The number of shards is part of the table's layout.",
        ),
        _limit(
            "writes to one experiment, if all runs belong to it",
            quotas["writes of a partition"] / a_run,
            load.runs,
            "short runs a second",
            "Use several experiments.",
        ),
        _limit(
            "the indexer of one experiment, if all runs belong to it",
            indexer,
            load.runs,
            "short runs a second",
            "Use several experiments. All changes of an experiment are processed by one sandbox.",
        ),
        _limit("removal of runs, if each one is removed after its retention", removed, load.runs / model.assumed("busy") * 3600, "runs an hour", "Run `gc` in addition, which has no limit of time."),
    ]
    return sorted(found, key=lambda one: one.times)


def removable(model: Model, rows: list[Row]) -> float:
    """Returns the number of runs that the housekeeper removes in an hour. Each run has 10
    metrics, 5 params and 3 tags. Computing is assumed to take place on the slower core."""
    [row] = [row for row in rows if row.name == f"find and remove {_REMOVED} such runs"]
    minutes = float(_constant("functions/housekeeper/src/lib.rs", r"MAX_DURATION: Duration = Duration::from_mins\((\d+)\)"))
    units = row.cold.reads + row.cold.writes - row.cold.indexes
    computed = model.assumptions["cpu"]["ms a unit"] * units * model.assumed("core of the load model")
    waited = row.cold.requests / model.assumed("requests at a time") * model.assumed("ms of a request to the table")
    ms = waited + computed * max(1, model.assumed("MB of a whole core") / model.background_memory)
    # Half of its time is for deleted entities.
    return minutes / 2 * 60_000 / ms * _REMOVED


def _limit(name: str, limit: float, used: float, unit: str, remedy: str) -> Limit:
    return Limit(name, f"{_number(limit)} {unit}", f"{_number(used)} {unit}", limit / used, remedy)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _section(page: str, title: str) -> str:
    found = [text for text in re.split(r"^## ", page, flags=re.MULTILINE)[1:] if title in text.partition("\n")[0]]
    assert len(found) == 1, f"scale.md has {len(found)} sections about {title!r}"
    return found[0]


def _first_number(section: str) -> float:
    """Returns the number of runs, or of runs per second, from the title of a section."""
    found = re.match(r"[\d,]+", section)
    assert found
    return float(found[0].replace(",", ""))


def _partition(section: str, kind: str) -> tuple[float, float]:
    """Returns the number of partitions of a kind, and their write units per second."""
    found = re.search(rf"^\| `{kind}` \| ([\d,]+) \| ([\d,.]+) \|", section, re.MULTILINE)
    assert found, f"scale.md has no partitions {kind}"
    number, writes = (float(value.replace(",", "")) for value in found.groups())
    return number, writes


def _busy(section: str) -> float:
    """Returns the fraction of the time for which the busiest indexer is busy."""
    found = re.search(r"^\| [\d,]+ MB \(in the model\) \| ([\d.]+)% \|", section, re.MULTILINE)
    assert found, "scale.md does not say how busy the indexer is"
    return float(found[1]) / 100


def _constant(path: str, pattern: str) -> str:
    found = re.search(pattern, (REPOSITORY / path).read_text("utf-8"))
    assert found, f"{path} has no {pattern}"
    return found[1]


def section(model: Model, rows: list[Row], scale: str) -> str:
    load = busy_hour(model, rows)
    lines = [f"| {one.times:,.1f} | {one.name} | {one.limit} | {one.used} | {one.remedy} |\n" for one in limits(model, rows, scale)]
    sources = [f"- {name}: {one['value']:,}. {one['source']}.\n" for name, one in data("limits.json").items()]
    return f"""\
{_TITLE}

Generated by `python3 -m tools.cost`, from the tables above and the assumptions of [cost.md](../reference/cost.md#assumptions). In a busy
hour, the largest team of [cost.md](../reference/cost.md#three-teams-a-month) ({load.people:,} people) sends {_number(load.calls)} calls a
second, which take {_number(load.writes)} write units and {_number(load.reads)} read units and occupy {_number(load.sandboxes)} sandboxes.
{_number(load.active)} runs are active at the same time. The first column is the multiple of this load at which a limit is reached:

| times the busy hour | limit | value | used in the busy hour | what to do |
|---:|---|---:|---:|---|
{"".join(lines)}
An average load is assumed: a burst reaches a limit sooner. Each experiment also has at most 10 GB
([a full experiment](../guide/recover.md#a-full-experiment)). Limits of AWS, which were read in its documentation and not measured:

{"".join(sources)}"""


def written(model: Model, rows: list[Row]) -> str:
    """Returns the page with the section about limits at its end."""
    scale = PAGE.read_text("utf-8").partition(f"\n{_TITLE}\n")[0].rstrip("\n")
    return f"{scale}\n\n{section(model, rows, scale)}"
