"""Waiting until the index has caught up with what was loaded, so that searches are measured and not the indexer."""

import sqlite3
import time
from pathlib import Path

_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 1800


def is_indexed(data: Path) -> bool:
    """Whether the embedded engine's stream is empty: what was carried over to the index is deleted from it."""
    with sqlite3.connect(f"file:{data / 'dynamodb.sqlite'}?mode=ro", uri=True, timeout=30) as database:
        return database.execute("SELECT 1 FROM _stream_records LIMIT 1").fetchone() is None


def wait_until_indexed(data: Path, patience: float = _PATIENCE_SECONDS) -> float:
    """Poll until the index has caught up; returns the seconds that took."""
    start = time.monotonic()
    while not is_indexed(data):
        if time.monotonic() - start > patience:
            raise TimeoutError(f"the index is late after {patience} s")
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - start
