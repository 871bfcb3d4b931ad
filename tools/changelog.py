"""Puts the fragments in `changes/` into the changelog: `python3 -m tools.changelog`."""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")
UNRELEASED = "## [Unreleased]\n"


def fragments(folder: Path) -> dict[str, list[Path]]:
    """The fragments by kind, in the order of their names."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.removesuffix(".md").rpartition(".")[2]
        if kind not in found:
            raise ValueError(f"{path.name}: a fragment is named <name>.<kind>.md, with a kind of {', '.join(KINDS)}")
        if not re.match(r"- \S", path.read_text("utf-8")):
            raise ValueError(f"{path.name}: a fragment begins with '- '")
        found[kind].append(path)
    return found


def collected(changelog: str, texts: dict[str, list[str]]) -> str:
    """The changelog with these items at the ends of the sections of what is not released."""
    before, mark, rest = changelog.partition(UNRELEASED)
    if not mark:
        raise ValueError("the changelog has no section 'Unreleased'")
    end = re.search(r"^## ", rest, re.MULTILINE)
    section, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    for kind, items in texts.items():
        if items:
            section = _with_items(section, f"### {kind.capitalize()}\n", "".join(f"{item.strip()}\n" for item in items))
    return f"{before}{mark}{section}{after}".rstrip() + "\n"


def _with_items(section: str, heading: str, items: str) -> str:
    before, mark, rest = section.partition(heading)
    if not mark:
        return f"{section.rstrip()}\n\n{heading}\n{items}\n" if section.strip() else f"\n{heading}\n{items}\n"
    end = re.search(r"^### ", rest, re.MULTILINE)
    own, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    return f"{before}{mark}{own.rstrip()}\n{items}\n{after}"


def main() -> None:
    changelog = REPOSITORY / "CHANGELOG.md"
    try:
        found = fragments(REPOSITORY / "changes")
        texts = {kind: [path.read_text("utf-8") for path in paths] for kind, paths in found.items()}
        changelog.write_text(collected(changelog.read_text("utf-8"), texts), "utf-8")
    except ValueError as wrong:
        sys.exit(str(wrong))
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main()
