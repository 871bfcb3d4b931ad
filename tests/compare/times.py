"""Which request of a scenario made a time.

Two servers never write the same time, but the runner lets the clock tick before each request and sends it to both
at that moment. So a time tells which request wrote it, and that is what is compared: a time of creation that stays,
an update that is of the request that made it and not of a later one, a time that was never set.
"""

import threading
import time
from bisect import bisect_right

#: Older times than this were written by no server of this session: they are what somebody asked for, or wrong.
_LONGEST_SESSION_MS = 6 * 3_600_000


class Clock:
    """When the requests of a scenario were sent, in ms. May be used by several threads."""

    def __init__(self) -> None:
        self._sent: list[int] = []
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Wait for the next millisecond and note it: the next request is sent now.

        Times of creation decide orders, too; with equal ones the server may choose, and two servers would differ.
        """
        with self._lock:
            start = _now()
            while (now := _now()) <= start:
                time.sleep(0.0002)
            self._sent.append(now)

    def name(self, value: int) -> str | int:
        """The request that was under way at this time; a time that no request can have made stays as it is."""
        now = _now()
        if not now - _LONGEST_SESSION_MS < value <= now:
            return value
        request = bisect_right(self._sent, value)
        return f"<time of request {request}>" if request else "<time before the first request>"


def _now() -> int:
    return time.time_ns() // 1_000_000
