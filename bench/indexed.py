"""Waits until the index is up to date, so that searches are measured and not the indexer."""

import sqlite3
import time
from pathlib import Path

_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 1800


def is_indexed(data: Path) -> bool:
    """Returns whether the embedded engine's stream is empty. Records are deleted from it when they
    are processed.
    """
    with sqlite3.connect(f"file:{data / 'dynamodb.sqlite'}?mode=ro", uri=True, timeout=30) as database:
        return database.execute("SELECT 1 FROM _stream_records LIMIT 1").fetchone() is None


def wait_until_indexed(data: Path, patience: float = _PATIENCE_SECONDS) -> float:
    """Polls until the index is up to date, and returns the seconds that it took."""
    start = time.monotonic()
    while not is_indexed(data):
        if time.monotonic() - start > patience:
            raise TimeoutError(f"the index is not up to date after {patience} s")
        time.sleep(_POLL_SECONDS)
    return time.monotonic() - start
