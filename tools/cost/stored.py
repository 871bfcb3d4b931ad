"""Reads the bytes of stored traces and runs from `docs/reference/stored-bytes.md`, which tests
generate.
"""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/reference/stored-bytes.md"
_STATES = ("not packed", "packed", "archived")


@dataclass(frozen=True)
class Stored:
    """Mean bytes of a trace."""

    table: float
    archive: float


@dataclass(frozen=True)
class StoredRun:
    """Mean bytes of a run in the table and its indexes."""

    #: Bytes of the measured run without the segments of its metrics.
    base: float
    #: Bytes of a metric's point in segments.
    point: float

    def size(self, points: int) -> float:
        """Returns the bytes of a run that differs from the measured one in its number of points."""
        return self.base + points * self.point


def stored(page: Path = PAGE) -> dict[str, Stored]:
    """Returns the bytes of a trace that is not packed, packed, and archived."""
    rows = _rows(page)
    pairs = zip(rows["**table**"], rows["**archive** (`.archive/` in the bucket)"], strict=True)
    return {state: Stored(*pair) for state, pair in zip(_STATES, pairs, strict=True)}


def stored_run(page: Path = PAGE) -> StoredRun:
    """Returns the bytes of a finished run."""
    rows = _rows(page)
    return StoredRun(rows["**table and indexes**"][-1] - rows["segments (`MHIST#`)"][-1], *rows["**a point**, in segments"])


def _rows(page: Path) -> dict[str, list[float]]:
    """Returns the figures of each row of the page's tables, by the text of its first cell."""
    rows = {}
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| bytes "):
            name, *values = [cell.strip() for cell in line.strip("|").split("|")]
            rows[name] = [float(value) for value in values if value]
    return rows
