"""What the requests cost, and how long the whole may take."""

import json
import math
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

#: In all, and what of it is kept to remove what was made.
MOST_DOLLARS, MOST_SECONDS, DOLLARS_TO_CLEAN_UP, SECONDS_TO_CLEAN_UP = 1.0, 20 * 60, 0.1, 5 * 60
_PRICES = json.loads((Path(__file__).parents[1] / "cost/prices.json").read_text())["prices"]
_MILLION = 1_000_000
#: The memory of most functions.
_GB = 0.5
#: More write units than any request of the checks takes, with the indexer's.
_WRITES = 40
#: GB of the smallest table that a restoration is counted as, and what one costs.
RESTORED_GB, RESTORED_DOLLARS_A_GB = 1, 0.15


class Spent(Exception):
    """The next request might cost more than was allowed."""


@dataclass
class Spending:
    """An upper bound: prices of us-east-1 without any free tier, and a function that computes as long as its answer takes."""

    most: float = MOST_DOLLARS - DOLLARS_TO_CLEAN_UP
    dollars: float = 0.0
    requests: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def before(self) -> None:
        if self.dollars >= self.most:
            raise Spent(f"{self.requests} requests may have cost ${self.dollars:.2f}")

    def request(self, sent: int, got: int, seconds: float) -> None:
        """One request to an API."""
        parts = max(1, math.ceil(sent / (512 * 1024))) + got // (512 * 1024)
        of_calls = (parts * _price("gateway") + _price("invocations") + _WRITES * _price("writes") + _price("bucket writes")) / _MILLION
        of_time = seconds * _GB * _price("time")
        # Its line in the log, and what it sends out.
        others = 2e-6 * _price("logs") + got / 1e9 * _price("out")
        with self._lock:
            self.requests += 1
            self.dollars += of_calls + of_time + others

    def restoration(self, size: int) -> None:
        """Of a table of so many bytes. It is refused where it alone would be too much."""
        cost = max(RESTORED_GB, size / 1e9) * RESTORED_DOLLARS_A_GB
        if self.dollars + cost > self.most:
            raise Spent("the table is too large to restore for a dollar")
        with self._lock:
            self.dollars += cost


def _price(name: str) -> float:
    return _PRICES[name]["dollars"]


@dataclass
class Deadline:
    """The end of the time in which questions may be put."""

    seconds: float = MOST_SECONDS - SECONDS_TO_CLEAN_UP
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._start + self.seconds - time.monotonic()
