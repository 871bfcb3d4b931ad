"""Computes the cost of calls, of the work behind them, and of storage, in dollars."""

import json
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tools.cost.capacity import Units
from tools.cost.stack import HOURS, Stack

_HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
GB = 1_000_000_000


def data(name: str) -> Any:
    return json.loads((_HERE / name).read_text("utf-8"))


@dataclass(frozen=True)
class Cost:
    """Dollars by category."""

    gateway: float = 0
    invocations: float = 0
    time: float = 0
    logs: float = 0
    table: float = 0
    bucket: float = 0

    @property
    def all(self) -> float:
        return sum(getattr(self, field.name) for field in fields(self))

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __mul__(self, times: float) -> "Cost":
        return Cost(*(getattr(self, field.name) * times for field in fields(self)))


class Model:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.prices = data("prices.json")
        self.assumptions = data("assumptions.json")
        sizes = {size for name, size in stack.memory.items() if name not in (*_BACKGROUND, _DELIVERER)}
        assert len(sizes) == 1, f"functions that handle requests have different memory: {stack.memory}"
        #: Memory of the functions that handle requests, in MB.
        self.memory = sizes.pop()
        sizes = {stack.memory[name] for name in _BACKGROUND}
        assert len(sizes) == 1, f"functions in the background have different memory: {stack.memory}"
        #: Memory of the indexer and the housekeeper, in MB.
        self.background_memory = sizes.pop()
        #: Memory of the function that sends events to webhooks, in MB.
        self.deliverer_memory = stack.memory[_DELIVERER]

    def price(self, name: str) -> float:
        """Returns the dollars per unit of the price: a million, a GB or an hour."""
        return self.prices["prices"][name]["dollars"]

    def assumed(self, name: str) -> float:
        return self.assumptions[name]["value"]

    def on_a_slower_core(self) -> "Model":
        """Returns the model with the processor time that the load model assumes for calls."""
        slower = Model(self.stack)
        times = self.assumed("core of the load model")
        cpu = slower.assumptions["cpu"]
        slower.assumptions["cpu"] = cpu | {name: cpu[name] * times for name in ("ms a call", "ms a unit")}
        return slower

    # ---- calls

    def call(self, units: Units, bucket: list[str] | None = None, count: int = 1, starts: float | None = None) -> Cost:
        """Returns the cost of `count` calls through the gateway. The requests to the table and
        bucket are those of all calls together."""
        bucket = bucket or []
        each = Cost(
            gateway=self.price("gateway") / MILLION,
            invocations=self.price("invocations") / MILLION,
            time=self.seconds(self.assumed("ms of a start")) * (self.assumed("starts") if starts is None else starts),
            logs=self.logged(self.bytes_logged()),
        )
        return each * count + Cost(
            time=self.seconds(self.ms(units, bucket, count)),
            table=self.units(units),
            bucket=sum(self.price(_BUCKET[name]) for name in bucket) / MILLION,
        )

    def work(self, units: Units, memory: int | None = None) -> Cost:
        """Returns the cost of a function's work that is not a call, or that belongs to a call
        that is already paid for. By default, the function is the indexer or the housekeeper."""
        memory = memory or self.background_memory
        return Cost(time=self.seconds(self.ms(units, [], 0, memory), memory), table=self.units(units))

    def units(self, units: Units) -> float:
        return (units.writes * self.price("writes") + units.reads * self.price("reads")) / MILLION

    def ms(self, units: Units, bucket: list[str], count: int, memory: int | None = None) -> float:
        """Returns how long functions run: the time they wait for requests, and their CPU time on
        a fraction of a core. Every call is rounded up to whole ms."""
        side_by_side = self.assumed("requests at a time") * max(count, 1)
        waits = min(units.requests, side_by_side) + max(0.0, units.requests - side_by_side) / self.assumed("requests at a time")
        cpu = self.assumptions["cpu"]
        computed = cpu["ms a call"] * count + cpu["ms a unit"] * (units.reads + max(0.0, units.writes - units.indexes))
        took = (
            waits * self.assumed("ms of a request to the table")
            + len(bucket) * self.assumed("ms of a request to the bucket")
            + computed * max(1, self.assumed("MB of a whole core") / (memory or self.memory))
        )
        return max(count, 1) * math.ceil(took / max(count, 1)) if count else took

    def seconds(self, ms: float, memory: int | None = None) -> float:
        """Returns the dollars for a function's time. Lambda's GB is 1,024 MB."""
        return ms / 1000 * (memory or self.memory) / 1024 * self.price("time")

    def bytes_logged(self, own_line: int = 0) -> int:
        """Returns the bytes that a call adds to logs. `own_line` replaces the length of the
        function's own line."""
        platform = [] if self.stack.silent == set(self.stack.memory) else self.assumptions["platform lines"]["value"]
        own = ["x" * own_line] if own_line else self.assumptions["own lines"]["value"]
        gateway = self.assumptions["gateway line"]["value"] if self.stack.gateway_lines else []
        return sum(len(line.encode()) for line in [*platform, *own, *gateway])

    def logged(self, size: float) -> float:
        kept = self.price("kept logs") * self.assumed("compressed logs") * self.stack.log_days / 30
        return size / GB * (self.price("logs") + kept)

    def gateway(self, calls: float) -> float:
        """Returns the dollars for a month's calls."""
        first = 300 * MILLION
        return (min(calls, first) * self.price("gateway") + max(0.0, calls - first) * self.price("gateway, later")) / MILLION

    def refused(self) -> Cost:
        """Returns the cost of a month of requests with invented credentials, at the rate that the
        API for users accepts by default.
        """
        calls = self.stack.users_rate * HOURS * 3600
        each = self.call(Units(requests=1, reads=self.assumed("read units of a refused call")), starts=0)
        return replace(each * calls, gateway=self.gateway(calls))

    def delivery(self, units: Units) -> Cost:
        """Returns the cost of sending an event of 1 KB to one webhook: its row in the transaction of
        the call, an invocation of the indexer and one of `deliver`, and `units`, the requests of both.
        """
        return Cost(
            invocations=2 * self.price("invocations") / MILLION,
            time=self.seconds(self.assumed("ms of a delivery"), self.deliverer_memory) + self.work(Units(requests=2)).time,
            logs=self.logged(2 * self.bytes_logged()),
            table=self.units(units) + self.units(Units(writes=self.assumed("write units of an event"))),
        )

    # ---- storage and idle cost, per month

    def kept(self, size: float) -> float:
        """Returns the cost of bytes in the table, including point-in-time recovery."""
        return size / GB * (self.price("table") + self.price("recovery"))

    def infrequent(self, size: float, table: float) -> float:
        """Returns the difference that the table class for infrequent access makes to the cost of
        bytes in the table, and to the cost of its reads and writes.
        """
        ratio = self.price("infrequent writes") / self.price("writes")
        assert ratio == self.price("infrequent reads") / self.price("reads")
        return size / GB * (self.price("infrequent table") - self.price("table")) + (ratio - 1) * table

    def alarms(self) -> float:
        return self.stack.alarm_metrics * self.price("alarms")

    def dashboards(self) -> float:
        """Returns the cost of dashboards beyond an account's free ones. This stack's dashboard
        counts as free.
        """
        return max(0.0, self.stack.dashboards - self.assumed("free dashboards")) * self.price("dashboards")

    def ticks(self) -> float:
        tick = Cost(
            invocations=self.price("invocations") / MILLION,
            time=self.seconds(self.assumed("ms of a tick"), self.background_memory),
            logs=self.logged(self.bytes_logged()),
            table=self.units(Units(reads=self.assumed("read units of a tick"))),
        )
        return (tick * self.stack.ticks).all

    def idle(self) -> float:
        return self.alarms() + self.dashboards() + self.ticks() + self.stack.ticks * self.price("schedule") / MILLION

    def gatherings(self, changes: float) -> float:
        """Returns the number of times that the stream calls the indexer: at most once per shard
        and batching window."""
        return min(changes, HOURS * 3600 / max(self.stack.gathered, 1) * self.assumed("shards of the stream"))


#: Functions that handle no requests of clients.
_BACKGROUND = ("IndexerFunction", "HousekeeperFunction")
#: The function that sends events to webhooks, and waits for receivers most of the time.
_DELIVERER = "DeliverFunction"
_BUCKET = {"LIST": "bucket writes", "PUT": "bucket writes", "POST": "bucket writes", "GET": "bucket reads", "HEAD": "bucket reads", "DELETE": "bucket deletes"}
