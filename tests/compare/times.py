"""Maps times to the requests that caused them.

Two servers never write the same time, but the runner advances the clock before each request and
sends it to both servers at that moment. Therefore a time identifies the request that wrote it, and
this is what is compared: a creation time that must not change, an update time that must be that of
the update and not of a later request, or a time that was never set.
"""

import threading
import time
from bisect import bisect_right

#: Older times were not written by a server in this session. They were sent by a client, or are
#: wrong.
_LONGEST_SESSION_MS = 6 * 3_600_000


class Clock:
    """The times, in ms, at which the requests of a scenario were sent. Thread-safe."""

    def __init__(self) -> None:
        self._sent: list[int] = []
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Waits for the next millisecond and records it as the time of the next request.

        Creation times also determine orders. With equal ones, the order would be undefined, and two
        servers would differ.
        """
        with self._lock:
            start = _now()
            while (now := _now()) <= start:
                time.sleep(0.0002)
            self._sent.append(now)

    def name(self, value: int) -> str | int:
        """Names the request that was in flight at this time. Returns the time unchanged if no
        request can have caused it.
        """
        now = _now()
        if not now - _LONGEST_SESSION_MS < value <= now:
            return value
        request = bisect_right(self._sent, value)
        return f"<time of request {request}>" if request else "<time before the first request>"


def _now() -> int:
    return time.time_ns() // 1_000_000
