"""Counts what breaks the rules of `docs/STYLE.md` that a program can count. `python -m tests.documents.style` lowers the committed counts."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
COUNTS = Path(__file__).with_name("style.tsv")
#: Decisions and the list of changes are records of their time. The style guide names the words that it bans.
EXCEPT = ("docs/adr/", "changes/", "CHANGELOG.md", "docs/STYLE.md")

WORDS = re.compile(r"\b(of which|stands?|behind|beside|anew)\b", re.IGNORECASE)
LONGEST_LINE = 100
LONGEST_SENTENCE = 25

#: Words that are not used, lines of prose that are too long, sentences that are too long.
Count = tuple[int, int, int]
COLUMNS = ("words", "lines", "sentences")

_COMMENT = re.compile(r"^\s*//[/!]?(?: |$)")
_FENCE = re.compile(r"^\s*```")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.|#+|>) ")
_RULE = re.compile(r"^[\s|:-]*$")
_LINK = re.compile(r"\]\([^)]*\)|\]\[[^\]]*\]|https?://\S+")
_CODE = re.compile(r"`[^`]*`")
#: A full stop, unless it is one of an abbreviation.
_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?…][\"')*_]*(?=\s|$)")


def count(name: str, text: str) -> Count:
    """What a file has of each."""
    lines = list(_comments(text)) if name.endswith(".rs") else list(_document(text))
    return (
        len(WORDS.findall(text)),
        sum(_is_too_long(line) for line in (text.splitlines() if name.endswith(".rs") else lines) if _is_prose(name, line)),
        sum(_words(sentence) > LONGEST_SENTENCE for sentence in _sentences(lines)),
    )


def _is_prose(name: str, line: str) -> bool:
    comment = _COMMENT.match(line)
    if name.endswith(".rs") and not comment:
        return False
    text = line[comment.end() :] if comment and name.endswith(".rs") else line
    return not text.lstrip().startswith(("|", "# ", "## ", "### ", "!["))


def _is_too_long(line: str) -> bool:
    """A line that could be shorter: an address cannot be broken."""
    return len(line) > LONGEST_LINE and len(re.sub(r"\S{60,}", "", line)) > LONGEST_LINE - 60


def _comments(text: str) -> Iterator[str]:
    """The lines of comments; where code is in between, an empty one."""
    fenced = False
    for line in text.splitlines():
        found = _COMMENT.match(line)
        if found and _FENCE.match(line[found.end() :]):
            fenced = not fenced
        yield line[found.end() :] if found and not fenced else ""


def _document(text: str) -> Iterator[str]:
    """The lines of a document without its code."""
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        yield "" if fenced or _FENCE.match(line) else line


def _sentences(lines: list[str]) -> Iterator[str]:
    """Sentences end with their paragraph, list item, or cell of a table."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if not line.strip() or _ITEM.match(line) or line.lstrip().startswith("|"):
            yield from _END.split(" ".join(paragraph))
            paragraph = []
        if line.lstrip().startswith("|"):
            for cell in () if _RULE.match(line) else line.strip().strip("|").split(" | "):
                yield from _END.split(cell)
        else:
            paragraph.append(_ITEM.sub("", line).strip())


def _words(sentence: str) -> int:
    """A piece of code is one word, the address of a link none."""
    plain = _CODE.sub("code", _LINK.sub("]", sentence))
    return sum(any(letter.isalnum() for letter in word) for word in plain.split())


def real() -> dict[str, Count]:
    """The counts of all files that have any."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    files = sorted(name for name in set(listed.stdout.decode().split("\0")) if name and not name.startswith(EXCEPT))
    counts = {name: count(name, (REPOSITORY / name).read_text("utf-8")) for name in files if (REPOSITORY / name).exists()}
    return {name: found for name, found in counts.items() if any(found)}


def committed(text: str) -> dict[str, Count]:
    counts: dict[str, Count] = {}
    for line in text.splitlines()[1:]:
        name, *numbers = line.split("\t")
        found, known = tuple(map(int, numbers)), counts.get(name, (0, 0, 0))
        # A merge of two branches leaves both rows (.gitattributes).
        counts[name] = (max(found[0], known[0]), max(found[1], known[1]), max(found[2], known[2]))
    return counts


def table(counts: dict[str, Count]) -> str:
    rows = ["\t".join(("file", *COLUMNS)), *("\t".join((name, *map(str, counts[name]))) for name in sorted(counts))]
    return "\n".join(rows) + "\n"


def differences(found: dict[str, Count], listed: dict[str, Count]) -> list[str]:
    """Counts that rose, and counts that fell and are still listed."""
    wrong = []
    for name in sorted(found.keys() | listed.keys()):
        for column, now, before in zip(COLUMNS, found.get(name, (0, 0, 0)), listed.get(name, (0, 0, 0))):
            if now > before:
                wrong.append(f"{name}: {now} {column}, at most {before} (docs/STYLE.md)")
            elif now < before:
                wrong.append(f"{name}: only {now} {column} now: run python -m tests.documents.style")
    return wrong


def lowered(found: dict[str, Count], listed: dict[str, Count]) -> dict[str, Count]:
    """The new list. A file that moved may take its counts along, so a file that is not listed counts only in the sum."""
    for name in found.keys() & listed.keys():
        for column, now, before in zip(COLUMNS, found[name], listed[name]):
            if now > before:
                raise ValueError(f"{name}: {now} {column}, at most {before} (docs/STYLE.md)")
    for place, column in enumerate(COLUMNS):
        now, before = (sum(counts[place] for counts in table_.values()) for table_ in (found, listed))
        if now > before:
            raise ValueError(f"{now} {column} in all, at most {before}: {', '.join(sorted(found.keys() - listed.keys()))} are new")
    return found


def main() -> None:
    try:
        COUNTS.write_text(table(lowered(real(), committed(COUNTS.read_text()))))
    except ValueError as rose:
        sys.exit(str(rose))


if __name__ == "__main__":
    main()
