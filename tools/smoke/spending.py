"""Limits on the cost and duration of a run."""

import json
import math
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

#: Limits of the whole run, and the parts of them that are reserved for cleaning up.
MOST_DOLLARS, MOST_SECONDS, DOLLARS_TO_CLEAN_UP, SECONDS_TO_CLEAN_UP = 1.0, 20 * 60, 0.1, 5 * 60
_PRICES = json.loads((Path(__file__).parents[1] / "cost/prices.json").read_text())["prices"]
_MILLION = 1_000_000
#: Memory of most functions.
_GB = 0.5
#: Upper bound of the write units of a request, including those of the indexer.
_WRITES = 40
#: Minimum billed size of a restored table in GB, and the price per GB.
RESTORED_GB, RESTORED_DOLLARS_A_GB = 1, 0.15


class Spent(Exception):
    """The next request might exceed the limit."""


@dataclass
class Spending:
    """Upper bound of the cost: prices of us-east-1 without free tiers, and functions that compute
    for as long as their response takes.
    """

    most: float = MOST_DOLLARS - DOLLARS_TO_CLEAN_UP
    dollars: float = 0.0
    requests: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def before(self) -> None:
        if self.dollars >= self.most:
            raise Spent(f"{self.requests} requests may have cost ${self.dollars:.2f}")

    def request(self, sent: int, got: int, seconds: float) -> None:
        """Adds the cost of a request to an API."""
        parts = max(1, math.ceil(sent / (512 * 1024))) + got // (512 * 1024)
        of_calls = (parts * _price("gateway") + _price("invocations") + _WRITES * _price("writes") + _price("bucket writes")) / _MILLION
        of_time = seconds * _GB * _price("time")
        # Its log line, and its outgoing traffic.
        others = 2e-6 * _price("logs") + got / 1e9 * _price("out")
        with self._lock:
            self.requests += 1
            self.dollars += of_calls + of_time + others

    def restoration(self, size: int) -> None:
        """Adds the cost of restoring a table of this size, or refuses if it would exceed the limit.
        """
        cost = max(RESTORED_GB, size / 1e9) * RESTORED_DOLLARS_A_GB
        if self.dollars + cost > self.most:
            raise Spent("the table is too large to restore for a dollar")
        with self._lock:
            self.dollars += cost


def _price(name: str) -> float:
    return _PRICES[name]["dollars"]


@dataclass
class Deadline:
    """Time limit for starting checks."""

    seconds: float = MOST_SECONDS - SECONDS_TO_CLEAN_UP
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._start + self.seconds - time.monotonic()
