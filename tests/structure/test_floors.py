"""Tests that crates depend only on their own floor and lower ones, and that only the indexer packs
and adds entries to the index of runs.
"""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
#: The floors from the lowest to the highest. Floors in the same row do not use each other. The
#: directory of a crate determines its floor.
_FLOORS = (
    ("shared/language", "shared/runtime"),
    ("shared/storage",),
    ("shared/http",),
    ("shared/local",),
    ("shared/testing",),
    ("functions",),
    ("domains",),
    ("cli", "bench"),
)
#: Maximum number of crates in a chain of dependent libraries.
_LONGEST_CHAIN = 10
#: Maximum number of packages in the workspace that are not functions. Each domain adds a function.
_MOST_PACKAGES = 29
#: Functions that add entries to the index of runs. Only one indexer may process a run at a time
#: (docs/design/run-index.md, "Concurrent indexers").
_OF_THE_INDEXER = re.compile(r"\b(run_entries|Directory::default|enter)\(")


@cache
def _manifests() -> dict[str, tuple[str, dict]]:
    """Returns the directory and the manifest of each crate, by name."""
    folders = [path.parent for pattern in ("shared/*/*", "functions/*", "domains", "cli", "bench/*") for path in _REPOSITORY.glob(f"{pattern}/Cargo.toml")]
    manifests = ((str(folder.relative_to(_REPOSITORY)), tomllib.loads((folder / "Cargo.toml").read_text())) for folder in folders)
    return {manifest["package"]["name"]: (folder, manifest) for folder, manifest in manifests}


def _used(crate: str, *kinds: str) -> set[str]:
    _, manifest = _manifests()[crate]
    return {used for kind in kinds for used in manifest.get(kind, {})} & set(_manifests())


def _used_by_library(crate: str) -> set[str]:
    """Returns the crates that the library of a crate uses, without those of its `main.rs`."""
    folder, _ = _manifests()[crate]
    files = [path for path in (_REPOSITORY / folder / "src").rglob("*.rs") if path.name != "main.rs" or crate == "mlflow-serverless"]
    text = "\n".join(path.read_text() for path in files)
    return {used for used in _used(crate, "dependencies") if re.search(rf"\b{used.replace('-', '_')}::", text)}


def _floor(crate: str) -> tuple[int, str]:
    folder, _ = _manifests()[crate]
    found = [(level, floor) for level, row in enumerate(_FLOORS) for floor in row if folder == floor or folder.startswith(f"{floor}/")]
    assert len(found) == 1, f"{folder} is on no floor"
    return found[0]


def test_every_crate_is_found() -> None:
    members = tomllib.loads((_REPOSITORY / "Cargo.toml").read_text())["workspace"]["members"]
    assert len(_manifests()) == sum(len(list(_REPOSITORY.glob(f"{member}/Cargo.toml"))) for member in members) >= 30


@pytest.mark.parametrize("crate", sorted(_manifests()))
def test_a_crate_uses_its_own_floor_and_lower_ones(crate: str) -> None:
    level, floor = _floor(crate)
    above = {used for used in _used(crate, "dependencies", "build-dependencies") for other in [_floor(used)] if other[0] >= level and other[1] != floor}
    assert not above


def test_functions_do_not_use_each_other() -> None:
    functions = {crate for crate in _manifests() if _floor(crate)[1] == "functions"}
    assert len(functions) >= 10
    # The binary of GraphQL mounts the domains that GraphQL calls. No library uses another function.
    users = {crate for crate in functions if _used(crate, "dependencies") & functions}
    assert users == {"graphql"}
    assert not any(_used_by_library(crate) & functions for crate in functions)


def test_no_crates_use_each_other() -> None:
    """Checks for circular dependencies, including those of tests, for which cargo would compile a
    crate twice.
    """
    left = {name: _used(name, "dependencies", "dev-dependencies", "build-dependencies") for name in _manifests()}
    while free := [name for name, used in left.items() if not used & set(left)]:
        for name in free:
            del left[name]
    assert not left


def test_no_chain_of_dependencies_is_long() -> None:
    @cache
    def length(crate: str) -> int:
        return 1 + max(map(length, _used_by_library(crate)), default=0)

    assert max(map(length, _manifests())) <= _LONGEST_CHAIN


def test_there_are_few_packages() -> None:
    assert sum(not folder.startswith("functions/") for folder, _ in _manifests().values()) <= _MOST_PACKAGES


def test_a_library_with_one_user_gives_a_reason() -> None:
    for crate, (folder, _) in _manifests().items():
        users = [other for other in _manifests() if crate in _used(other, "dependencies", "dev-dependencies")]
        if folder.startswith("shared/") and len(users) < 2:
            assert "crate of its own" in (_REPOSITORY / folder / "src/lib.rs").read_text(), f"only {users} use {crate}"


def test_storage_does_not_depend_on_messages() -> None:
    for crate in ("model", "key-schema", "table"):
        assert "mlflow-api" not in _used(crate, "dependencies"), crate


def test_only_the_indexer_packs() -> None:
    """Checks that no crate but the indexer packs, because two packers would pack the same items.
    The import is exempt: it writes packed histories of runs that do not exist for other processes
    yet.
    """
    assert {crate for crate in _manifests() if "metric-packing" in _used(crate, "dependencies")} == {"fts-indexer", "mlflow-serverless"}
    of_program = [path.read_text() for path in (_REPOSITORY / "cli/src").rglob("*.rs") if "metric_packing" in path.read_text()]
    assert all(set(re.findall(r"metric_packing::(\w+)", text)) == {"HistoryPacker"} for text in of_program)
    assert "mod trace_packing;" in (_REPOSITORY / "functions/fts-indexer/src/lib.rs").read_text().splitlines()


def test_only_the_indexer_adds_entries() -> None:
    users = {
        path.relative_to(_REPOSITORY).parts[:2]
        for folder in ("functions", "shared", "cli", "domains", "bench")
        for path in (_REPOSITORY / folder).rglob("src/**/*.rs")
        if "run_index" in (text := path.read_text()) and _OF_THE_INDEXER.search(text)
    }
    assert users == {("functions", "fts-indexer")}
    # The library itself only writes directory rows. Apart from that, it deletes entries and sets
    # marks.
    puts = [
        path.name
        for path in (_REPOSITORY / "shared/storage/run-index/src").glob("*.rs")
        if re.search(r"\.put\(|Write::Put|write_many\([^V&]", path.read_text())
    ]
    assert puts == ["list_directory.rs"]
