"""Tests that each test mentioned in `docs/guide/security.md` exists."""

import re
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_CLASSES = (_REPOSITORY / "docs/guide/security.md").read_text().split("## Classes of mistakes")[1]


def _tests() -> set[str]:
    """Returns the names of all tests in the repository."""
    sources = [path for folder in ("shared", "functions", "cli", "domains") for path in (_REPOSITORY / folder).rglob("*.rs")]
    names = {name for path in sources for name in re.findall(r"#\[(?:tokio::)?test[^\]]*\]\s+(?:async )?fn (\w+)", path.read_text())}
    sources = (_REPOSITORY / "tests").rglob("test_*.py")
    return names | {name for path in sources for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}


def test_named_tests_are_there() -> None:
    named = set(re.findall(r"`(\w+_\w+)`", _CLASSES))
    assert len(named) > 20
    assert not named - _tests()


@pytest.mark.parametrize("line", [line for line in _CLASSES.splitlines() if line.startswith("| ")][1:])
def test_each_class_has_a_test_or_cannot_occur(line: str) -> None:
    last = line.strip("| ").split(" | ")[-1]
    assert "`" in last or "it cannot occur" in last
