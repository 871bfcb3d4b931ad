"""Tests that no files of a crate use each other in a circle."""

from pathlib import Path

import pytest

from .files import arrows, circles, modules

REPOSITORY = Path(__file__).resolve().parents[2]
ROOTS = sorted(
    root
    for pattern in ("bench/*", "functions/*", "shared/*/*")
    for manifest in REPOSITORY.glob(f"{pattern}/Cargo.toml")
    for root in [manifest.parent / "src/lib.rs"]
) + [REPOSITORY / "cli/src/main.rs"]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.parents[1].name)
def test_no_files_of_a_crate_use_each_other(root):
    found = circles(arrows(modules(root)))
    assert not found, [[str(file.relative_to(REPOSITORY)) for file in circle] for circle in found]


def test_each_file_is_looked_at():
    """Checks that all files are found, because a file that is not found cannot be in a circle."""
    for root in ROOTS:
        read = {module.file for module in modules(root).values()}
        skipped = {
            file
            for file in root.parent.rglob("*.rs")
            if file not in read and file.name not in ("main.rs", "tests.rs") and "tests" not in file.parts[len(root.parent.parts) :]
        }
        assert not skipped


def crate(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return directory / "lib.rs"


def names(found: list[list[Path]], directory: Path) -> list[list[str]]:
    return [[str(file.relative_to(directory)) for file in circle] for circle in found]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("use crate::b::B;\npub struct A;", "use super::a::A;\npub struct B;"),
        ("use crate::{b::{self, B}};\npub struct A;", "pub struct B;\nfn f(_: crate::a::A) {}"),
        ("use crate::b::*;\npub struct A;", "use crate::A;\npub struct B;"),
    ],
)
def test_circles_are_found(tmp_path, a, b):
    root = crate(tmp_path, {"lib.rs": "mod a;\npub mod b;\npub use a::A;", "a.rs": a, "b.rs": b})
    assert names(circles(arrows(modules(root))), tmp_path) == [["a.rs", "b.rs"]]


def test_a_circle_of_three_by_way_of_a_parent(tmp_path):
    files = {
        "lib.rs": "mod a;",
        "a/mod.rs": "mod b;\nmod c;\nuse b::B;\npub(crate) const LONG: usize = 1;\nfn f(_: B) {}",
        "a/b.rs": "use super::c::C;\npub(super) struct B(C);",
        "a/c.rs": "use super::LONG;\npub(super) struct C([u8; LONG]);",
    }
    assert names(circles(arrows(modules(crate(tmp_path, files)))), tmp_path) == [["a/b.rs", "a/c.rs", "a/mod.rs"]]


def test_a_module_that_hands_on_is_in_no_circle(tmp_path):
    files = {
        "lib.rs": "mod a;\npub use a::{A, B};",
        "a/mod.rs": "mod b;\nmod c;\npub use b::B;\npub use c::A;",
        "a/b.rs": "use super::A;\npub struct B(A);\n#[cfg(test)]\nmod tests {\n use crate::B;\n}",
        "a/c.rs": "// Like crate::a::B.\npub struct A;\nconst T: &str = \"https://crate::a::B\";\nconst C: char = '\"';",
    }
    assert circles(arrows(modules(crate(tmp_path, files)))) == []
