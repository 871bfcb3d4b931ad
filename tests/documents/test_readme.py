"""Tests that the README shows the example that the tests run, and that links are valid."""

import re
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "bench/*.md", "clients/*/*.md", "docs/**/*.md", "shared/*.md", "tests/*.md")
    for path in _REPOSITORY.glob(pattern)
)


def test_the_readme_shows_the_example():
    readme = (_REPOSITORY / "README.md").read_text()
    for name, kind in [("quickstart.py", "python"), ("quickstart.expected", "text")]:
        assert f"```{kind}\n{(_REPOSITORY / 'examples' / name).read_text()}```" in readme


def test_the_index_of_decisions_has_all_of_them():
    decisions = _REPOSITORY / "docs" / "adr"
    index = (decisions / "README.md").read_text()
    missing = [path.name for path in decisions.glob("[0-9]*.md") if f"]({path.name})" not in index]
    assert not missing


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_REPOSITORY)))
def test_links_lead_somewhere(document: Path):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        found = document.parent / path if path else document
        assert found.exists(), target
        assert not anchor or anchor in _anchors(found), target
