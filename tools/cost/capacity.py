"""The rows of the capacity pages, which the meters of the tests have written."""

import re
from dataclasses import dataclass
from pathlib import Path

_FIGURES = ("requests", "write units", "read units")


@dataclass(frozen=True)
class Units:
    """What is asked of the table: the requests, and the units that they consume."""

    requests: float = 0
    writes: float = 0
    reads: float = 0
    #: The part of the write units that went to indexes.
    indexes: float = 0


@dataclass(frozen=True)
class Row:
    page: str
    section: str
    name: str
    #: On its own: by a process that has read nothing yet.
    cold: Units
    #: Again, shortly after. Some rows do not tell it apart.
    warm: Units | None
    #: With what the stream's consumer does about it. Some rows say it.
    all_in: Units | None

    @property
    def bucket(self) -> list[str]:
        """The requests that a call sends to the bucket."""
        named = re.search(r"; bucket: (.*)$", self.name)
        return [] if not named or named[1] == "nothing" else named[1].split(", ")


def pages(docs: Path) -> list[Path]:
    """The pages: that of tracking first, and that of users, which come on top of all others, last."""
    return sorted(docs.glob("capacity*.md"), key=lambda page: (page.stem != "capacity", page.stem == "capacity-access", page.stem))


def rows(docs: Path) -> list[Row]:
    return [row for page in pages(docs) for row in _rows(page)]


def _rows(page: Path) -> list[Row]:
    found: list[Row] = []
    section, columns = "", []
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells or set(cells[0]) <= set("-: "):
            continue
        if cells[0] == "call":
            columns = _columns(cells)
            continue
        named = dict(zip(columns, cells, strict=True))
        cold = _units(named, "cold") or _units(named, "")
        assert cold, f"{page.name}: {cells[0]}: no figures"
        found.append(Row(page.name, section, cells[0], cold, _units(named, "warm"), _units(named, "all in")))
    return found


def _columns(cells: list[str]) -> list[str]:
    """The names of columns, each with what stands before the first of its three: `cold: requests`, `cold: write units`."""
    what, named = "", []
    for cell in cells:
        if cell.endswith("requests"):
            what = cell.removesuffix("requests")
        named.append(what + cell.removeprefix(what) if cell.endswith(_FIGURES) else cell)
    return named


def _units(cells: dict[str, str], what: str) -> Units | None:
    prefix = f"{what}: " if what else ""
    if f"{prefix}requests" not in cells:
        return None
    # Behind the figure stands its budget.
    requests, writes, reads = (float(cells[prefix + name].split(" / ")[0].replace(",", "")) for name in _FIGURES)
    return Units(requests, writes, reads, float(cells.get("of writes, indexes", "0").replace(",", "")))
