"""Tests that the files and crates mentioned on pages about the current state exist."""

import re
import subprocess
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_TRACKED = subprocess.run(["git", "ls-files"], cwd=_REPOSITORY, capture_output=True, check=True, text=True).stdout.split()
_OF_TODAY = ("adding", "consistency", "run-index", "run-metrics", "stream", "traces-at-rest")
_PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", *(f"docs/design/{name}.md" for name in _OF_TODAY)]
_HEADS = sorted(name for name in _TRACKED if re.fullmatch(r"(?:functions/|shared/[\w-]+/)?[\w-]+/src/lib\.rs", name))
_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:rs|py|json|yaml|toml|graphql|css|js|tsv|lock))`")
_FOLDER = re.compile(r"`((?:shared|functions|cli|tests|tools|store|docs|examples|bench)/[\w/-]+)`")
#: Files that exist only while a server runs.
_NOT_TRACKED = {"stream.lock"}


def _head(name: str) -> str:
    return "\n".join(line for line in (_REPOSITORY / name).read_text().splitlines() if line.startswith("//!"))


def _missing(text: str, tracked: list[str]) -> list[str]:
    """Returns the files and directories mentioned in a text, by the end of their path, that do not
    exist.
    """
    paths = {f"/{name}" for name in tracked}
    folders = {f"{path.rpartition('/')[0]}/" for path in paths}
    folders |= {f"{folder[: place + 1]}" for folder in folders for place, letter in enumerate(folder) if letter == "/"}
    files = [name for name in _FILE.findall(text) if name not in _NOT_TRACKED and not any(path.endswith(f"/{name}") for path in paths)]
    named = [name.rstrip("/") for name in _FOLDER.findall(text)]
    return files + [name for name in named if not any(folder.endswith(f"/{name}/") for folder in folders)]


@pytest.mark.parametrize("page", _PAGES)
def test_a_page_names_files_that_are_there(page: str) -> None:
    assert not _missing((_REPOSITORY / page).read_text(), _TRACKED)


def test_heads_of_crates_name_files_that_are_there() -> None:
    assert len(_HEADS) > 30
    missing = {name: found for name in _HEADS if (found := _missing(_head(name), _TRACKED))}
    assert not missing


def test_the_architecture_names_every_crate() -> None:
    text = (_REPOSITORY / "ARCHITECTURE.md").read_text().partition("## The crates")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", text, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    crates = {Path(name).parent.name for name in _TRACKED if re.fullmatch(r"(?:functions|shared/[\w-]+)/[\w-]+/Cargo\.toml", name)}
    assert crates <= listed
    # Crates that have been removed or renamed must not be listed.
    assert listed <= crates | {"domains", "cli"}


def test_a_missing_file_is_found() -> None:
    tracked = ["shared/a/src/b.rs", "functions/c/src/store/d.rs"]
    assert _missing("`b.rs`, `a/src/b.rs`, `shared/a`, `store/d.rs`, `functions/c/src/store/`, `E::f`", tracked) == []
    assert _missing("`e.rs`, `shared/b`, `store/b.rs`, `functions/c/src/st`", tracked) == ["e.rs", "store/b.rs", "shared/b", "functions/c/src/st"]
