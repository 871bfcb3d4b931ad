"""Tests that figures in documents are those of the generated pages.

A document quotes a figure as a link whose title is the name of the row: `[2 requests and 6 write
units](../capacity.md "create experiment")`. If several sections have a row of this name, the link
includes the section: `(../capacity.md#large-runs "get that run")`.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_DOCUMENTS = sorted(
    [*_REPOSITORY.glob("*.md"), *(_REPOSITORY / "docs").rglob("*.md"), *(_REPOSITORY / "shared").rglob("*.md")]
)
_QUOTE = re.compile(r'\[([^\]]+)\]\(([^)\s#]*capacity[\w-]*\.md)(#[\w-]+)?\s+"([^"]+)"\)')
_FIGURE = re.compile(r"(\d[\d,.]*) (request|write unit|read unit)s?")

#: The cells of a row by column name.
Row = dict[str, str]
#: Rows with the anchor of their section, and their name.
Page = list[tuple[str, str, Row]]


def _page(path: Path) -> Page:
    rows: Page = []
    section, columns = "", []
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            section = re.sub(r"[^\w\- ]", "", line[3:].lower()).replace(" ", "-")
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        second = next((cell for cell in cells if cell in ("warm: requests", "all in: requests")), None)
        if second:
            # The columns after the first one of the second group belong to the second group as
            # well.
            first, what = cells.index(second), second.partition(":")[0]
            columns = [f"{what}: {cell}" if place > first else cell for place, cell in enumerate(cells)]
        elif cells and not set(cells[0]) <= set("-: "):
            rows.append((section, cells[0], dict(zip(columns, cells))))
    return rows


def _row(page: Page, anchor: str | None, name: str) -> Row:
    found = [row for section, row_name, row in page if row_name == name and anchor in (None, f"#{section}")]
    assert len(found) == 1, f"{len(found)} rows are called {name!r}"
    return found[0]


def _metered(row: Row, unit: str) -> set[float]:
    """Returns the figures of a unit, cold and warm. Each is followed by its budget, which is
    ignored.
    """
    cells = [cell.partition(" / ")[0] for column, cell in row.items() if unit in column]
    return {float(cell.replace(",", "")) for cell in cells if re.fullmatch(r"[\d,.]+", cell)}


def _wrong(document: Path) -> list[str]:
    """Describes the quoted figures of a document that differ from the metered ones."""
    wrong = []
    for text, target, anchor, name in _QUOTE.findall(re.sub(r"\s+", " ", document.read_text())):
        row = _row(_page(document.parent / target), anchor or None, name)
        figures = _FIGURE.findall(text)
        assert figures, f"{document.name} quotes no figure of {name!r}: {text}"
        for figure, unit in figures:
            if float(figure.replace(",", "")) not in (metered := _metered(row, unit)):
                wrong.append(f"{document.name}: {name}: {figure} {unit}, metered {metered}")
    return wrong


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_REPOSITORY)))
def test_figures_are_what_was_metered(document: Path):
    assert not _wrong(document)


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_REPOSITORY)))
def test_whatever_is_called_metered_is_quoted(document: Path):
    """Checks that no figure is described as metered without a link to its row, because it would
    become outdated unnoticed.
    """
    claims = re.findall(r"[^.\n]*\bmetered\)[^.\n]*", document.read_text())
    assert not claims


def test_the_documents_quote_figures():
    quotes: dict[str, int] = defaultdict(int)
    for document in _DOCUMENTS:
        quotes[document.name] += len(_QUOTE.findall(re.sub(r"\s+", " ", document.read_text())))
    assert sum(quotes.values()) > 20


def test_a_wrong_figure_is_found(tmp_path: Path):
    (tmp_path / "capacity.md").write_text(
        "## Two things\n\n| call | cold: requests | write units | read units | warm: requests | write units | read units |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n| write | 3 / 4 | 1,204 / 1,300 | 1 / 1 | 2 / 4 | 1,204 / 1,300 | 0.5 / 1 |\n"
    )
    document = tmp_path / "page.md"
    document.write_text('[2 requests and 1,204\nwrite units](capacity.md "write"), [0.5 read units](capacity.md#two-things "write")')
    assert not _wrong(document)
    document.write_text('[3 requests](capacity.md "write")')
    assert not _wrong(document)
    document.write_text('[4 requests](capacity.md "write")')
    assert _wrong(document) == ["page.md: write: 4 request, metered {2.0, 3.0}"]
    document.write_text('[2 requests](capacity.md "read")')
    with pytest.raises(AssertionError, match="0 rows are called 'read'"):
        _wrong(document)
