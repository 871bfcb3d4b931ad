"""Amounts that documents quote, by name. A test checks the quotes against them."""

from tools.cost.calls import priced
from tools.cost.capacity import Row
from tools.cost.model import MILLION, Cost, Model, data
from tools.cost.teams import archive, find, teams

#: Calls in the summary: their names there, and their rows.
SUMMARY = {
    "log a batch of 10 metrics": ("capacity.md", "Runs whose metrics are logged once a second", "log_batch of all 10 metrics at one step (mean over 5 minutes)"),
    "create a run with 4 tags": ("capacity.md", "Runs, in an experiment with 1,000 runs", "create run, 4 tags"),
    "get a run": ("capacity.md", "Runs, in an experiment with 1,000 runs", "get a run with 100 metrics and 100 params"),
    "search: the latest 100 of 10,000 runs": ("capacity.md", "Searches, in an experiment with 10,000 runs of 10 metrics, 5 params and 3 tags", "latest 100"),
    "search: the best 100 by a metric": ("capacity.md", "Searches, in an experiment with 10,000 runs of 10 metrics, 5 params and 3 tags", "top 100 by a metric"),
    "a trace of ten spans, two calls": ("capacity-traces.md", "A whole trace: its spans by OTLP, `StartTrace`, and packing (mean over 1,000)", "a trace of ten spans and 5 KB"),
}


def dollars(amount: float) -> str:
    if amount == 0:
        return "$0"
    if amount < 0.00005:
        return "under $0.0001"
    if amount < 0.005:
        return f"${amount:.4f}"
    return f"${amount:.2f}" if amount < 20 else f"${amount:,.0f}"


def whole(amount: float) -> str:
    return f"${amount:,.0f}"


def summary(model: Model, rows: list[Row]) -> dict[str, Cost]:
    """Returns the cost of a million calls of each kind, including the indexer's work where it is
    metered."""
    found = {}
    for name, (page, section, row) in SUMMARY.items():
        one = priced(model, find(rows, {"page": page, "section": section, "row": row}))
        found[name] = one.all_in or one.cold
    found["the same, and archiving it"] = found["a trace of ten spans, two calls"] + archive(model, rows, data("teams.json")) * MILLION
    return found


def figures(model: Model, rows: list[Row]) -> dict[str, str]:
    """Returns the amounts in the format of the page and of quotes."""
    found = {f"price: {name}": price(price_["dollars"]) for name, price_ in model.prices["prices"].items()}
    found |= {f"a million: {name}": dollars(cost.all) for name, cost in summary(model, rows).items()}
    for team in teams(model, rows):
        found[f"{team.people}: ours"] = whole(sum(team.ours.values()))
        found[f"{team.people}: server"] = whole(sum(team.server.values()))
        found[f"{team.people}: infrequent"] = dollars(abs(team.infrequent[0]))
        found[f"{team.people}: infrequent, a month of traces"] = dollars(abs(team.infrequent[1]))
    found["idle"] = dollars(model.idle())
    found["refused"] = whole(model.refused().all)
    found["idle: alarms"] = dollars(model.alarms())
    found["idle: schedule"] = dollars(model.ticks())
    found["a call's logs"] = dollars(model.logged(model.bytes_logged()) * MILLION)
    # The costs that docs/measured/scale.md computes for a call: the gateway, the request to Lambda, and some
    # 12 ms.
    call = model.price("gateway") + model.price("invocations") + model.seconds(12) * MILLION
    found["gateway and Lambda, 12 ms"] = dollars(call)
    return found


def price(amount: float) -> str:
    """Formats a price like AWS: without rounding, and with at least two decimal digits."""
    if amount == 0:
        return "$0"
    text = f"{amount:.10f}".rstrip("0")
    return f"${amount:.2f}" if len(text.partition(".")[2]) < 2 else f"${text}"
