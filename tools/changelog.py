"""Collects the fragments in `changes/` into the changelog:
`python3 -m tools.changelog [--release 0.1.0 [--date 2030-01-31]]`.

With a version, everything unreleased becomes the section of that release.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")
UNRELEASED = "## [Unreleased]\n"


def fragments(folder: Path) -> dict[str, list[Path]]:
    """Returns the fragments by kind, sorted by name."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.removesuffix(".md").rpartition(".")[2]
        if kind not in found:
            raise ValueError(f"{path.name}: fragments are named <name>.<kind>.md, where the kind is one of {', '.join(KINDS)}")
        if not re.match(r"- \S", path.read_text("utf-8")):
            raise ValueError(f"{path.name}: fragments start with '- '")
        found[kind].append(path)
    return found


def collected(changelog: str, texts: dict[str, list[str]]) -> str:
    """Returns the changelog with these items appended to the sections of unreleased changes."""
    before, mark, rest = changelog.partition(UNRELEASED)
    if not mark:
        raise ValueError("the changelog has no section 'Unreleased'")
    end = re.search(r"^## ", rest, re.MULTILINE)
    section, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    for kind, items in texts.items():
        if items:
            section = _with_items(section, f"### {kind.capitalize()}\n", "".join(f"{item.strip()}\n" for item in items))
    return f"{before}{mark}{section}{after}".rstrip() + "\n"


def released(changelog: str, version: str, date: str) -> str:
    """Returns the changelog after moving everything unreleased into the section of a release."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"{version} is not a version such as 0.1.0")
    if f"## [{version}]" in changelog:
        raise ValueError(f"the changelog already has a release {version}")
    before, mark, rest = changelog.partition(UNRELEASED)
    if not mark or not rest.lstrip().startswith("### "):
        raise ValueError("the changelog has no unreleased changes")
    return f"{before}{mark}\n## [{version}] - {date}\n{rest}"


def _with_items(section: str, heading: str, items: str) -> str:
    before, mark, rest = section.partition(heading)
    if not mark:
        return f"{section.rstrip()}\n\n{heading}\n{items}\n" if section.strip() else f"\n{heading}\n{items}\n"
    end = re.search(r"^### ", rest, re.MULTILINE)
    own, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    return f"{before}{mark}{own.rstrip()}\n{items}\n{after}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tools.changelog")
    parser.add_argument("--release", metavar="VERSION", help="make a release of everything unreleased")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat(), help="date of the release, today by default")
    said = parser.parse_args()
    changelog = REPOSITORY / "CHANGELOG.md"
    try:
        found = fragments(REPOSITORY / "changes")
        texts = {kind: [path.read_text("utf-8") for path in paths] for kind, paths in found.items()}
        text = collected(changelog.read_text("utf-8"), texts)
        changelog.write_text(released(text, said.release, said.date) if said.release else text, "utf-8")
    except ValueError as wrong:
        sys.exit(str(wrong))
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main()
