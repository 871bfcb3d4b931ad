"""Prose keeps the rules of `docs/STYLE.md`, or at least breaks them ever less often."""

import re

import pytest

from . import style


def test_no_file_breaks_a_rule_more_often_than_listed() -> None:
    assert not style.differences(style.real(), style.committed(style.COUNTS.read_text()))


def test_the_list_is_sorted() -> None:
    """A merge leaves rows of both branches. Then `python -m tests.documents.style` mends the list."""
    text = style.COUNTS.read_text()
    assert text == style.table(style.committed(text))
    assert style.committed("file\twords\tlines\tsentences\na.md\t1\t0\t2\na.md\t0\t3\t2\n") == {"a.md": (1, 3, 2)}


def test_the_glossary_is_short_and_each_word_has_one_meaning() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (style.REPOSITORY / "docs" / "glossary.md").read_text(), re.MULTILINE)[1:]
    assert 0 < len(words) <= 20
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "It stands here. Behind it, of\nwhich nothing.", (2, 0, 0)),
        ("a.md", "Standing, understand, besides, notwithstanding.", (0, 0, 0)),
        ("a.rs", 'let text = "two of which";\n// anew', (2, 0, 0)),
        ("a.md", "word " * 21, (0, 1, 0)),
        ("a.md", "word " * 25 + ".", (0, 1, 0)),
        ("a.md", "word " * 13 + "\n" + "word " * 13, (0, 0, 1)),
        ("a.md", "word " * 13 + "\n\n" + "word " * 13, (0, 0, 0)),
        ("a.md", "- " + "word " * 13 + "\n- " + "word " * 13, (0, 0, 0)),
        ("a.md", "| " + "word " * 26 + "| word |", (0, 0, 1)),
        ("a.md", "| " + "word " * 20 + "| " + "word " * 20 + "|", (0, 0, 0)),
        ("a.md", "```\n" + "word " * 26 + "\n```", (0, 0, 0)),
        ("a.md", "See [" + "word " * 3 + "](https://example.org/" + "a" * 80 + ").", (0, 0, 0)),
        ("a.md", "word " * 13 + "(e.g. this)\n" + "word " * 13, (0, 0, 1)),
        ("a.md", "## " + "word " * 21, (0, 0, 0)),
        ("a.rs", "/// " + "word " * 20, (0, 1, 0)),
        ("a.rs", "//! | " + "word " * 20 + "|", (0, 0, 0)),
        ("a.rs", "#[doc = 1] // " + "word " * 20, (0, 0, 0)),
        ("a.rs", "    let long = " + "word + " * 20 + ";", (0, 0, 0)),
        ("a.rs", "// " + "word " * 13 + "\n// " + "word " * 13, (0, 0, 1)),
        ("a.rs", "// " + "word " * 13 + "\nlet a = 1;\n// " + "word " * 13, (0, 0, 0)),
        ("a.rs", "/// Word.\n/// ```\n/// " + "word " * 15 + "\n/// " + "word " * 15 + "\n/// ```", (0, 0, 0)),
    ],
)
def test_what_is_counted(name: str, text: str, expected: style.Count) -> None:
    assert style.count(name, text) == expected


def test_a_count_that_rose_or_fell_is_found() -> None:
    listed = {"a.md": (1, 0, 0), "b.md": (2, 0, 3)}
    assert style.differences(listed, listed) == []
    assert style.differences({"a.md": (2, 0, 0), "b.md": (2, 0, 3)}, listed) == ["a.md: 2 words, at most 1 (docs/STYLE.md)"]
    assert style.differences({"a.md": (1, 0, 0), "b.md": (2, 0, 3), "c.md": (0, 1, 0)}, listed) == ["c.md: 1 lines, at most 0 (docs/STYLE.md)"]
    fell = style.differences({"a.md": (1, 0, 0)}, listed)
    assert [line.partition(":")[0] for line in fell] == ["b.md", "b.md"]


def test_the_list_is_only_lowered() -> None:
    listed = {"a.md": (1, 0, 0), "b.md": (2, 0, 3)}
    assert style.lowered({"a.md": (1, 0, 0)}, listed) == {"a.md": (1, 0, 0)}
    # A file that moved.
    assert style.lowered({"c.md": (2, 0, 3)}, listed) == {"c.md": (2, 0, 3)}
    with pytest.raises(ValueError, match="a.md: 2 words"):
        style.lowered({"a.md": (2, 0, 0)}, listed)
    with pytest.raises(ValueError, match="c.md are new"):
        style.lowered({**listed, "c.md": (1, 0, 0)}, listed)
