"""Reads the bytes of stored traces from `docs/reference/stored-bytes.md`, which tests generate."""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/reference/stored-bytes.md"
_STATES = ("not packed", "packed", "archived")


@dataclass(frozen=True)
class Stored:
    """Mean bytes of a trace."""

    table: float
    archive: float


def stored(page: Path = PAGE) -> dict[str, Stored]:
    """Returns the bytes of a trace that is not packed, packed, and archived."""
    cells = {}
    for line in page.read_text("utf-8").splitlines():
        name, *values = [cell.strip() for cell in line.strip("|").split("|")]
        if name.startswith("**"):
            cells[name.split("**")[1]] = [float(value) for value in values]
    return {state: Stored(*pair) for state, pair in zip(_STATES, zip(cells["table"], cells["archive"], strict=True), strict=True)}
