"""Tests that the guide for operators mentions each option of the program."""

import re
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_SOURCES = _REPOSITORY / "cli" / "src"
_GUIDE = "\n".join(path.read_text("utf-8") for path in (_REPOSITORY / "docs" / "guide").glob("*.md"))


def _options(source: str) -> set[str]:
    """Returns the options that a source file declares, except for hidden ones."""
    fields = re.findall(r"#\[arg\((.*?)\)\]\s*(?:pub\(crate\) )?(\w+):", source, re.DOTALL)
    options = set()
    for attributes, field in fields:
        name = re.search(r'\blong(?: = "([\w-]+)")?', attributes)
        if name and "hide = true" not in attributes:
            options.add("--" + (name[1] or field.replace("_", "-")))
    return options


@pytest.mark.parametrize("path", sorted(_SOURCES.rglob("*.rs")), ids=lambda path: str(path.relative_to(_SOURCES)))
def test_each_option_is_in_the_guide(path: Path) -> None:
    missing = {option for option in _options(path.read_text("utf-8")) if not re.search(rf"{option}(?![\w-])", _GUIDE)}
    assert not missing


def test_options_of_serve_are_in_its_table() -> None:
    page = (_REPOSITORY / "docs/guide/run-locally.md").read_text("utf-8")
    table = page.split("## Options of `serve`")[1].split("\n## ")[0]
    sources = ("serve.rs", "table_options.rs", "artifact_options.rs")
    options = set().union(*(_options((_SOURCES / source).read_text("utf-8")) for source in sources))
    assert len(options) > 20
    assert not {option for option in options if f"`{option}" not in table}


def test_options_are_found() -> None:
    source = '#[arg(long)]\nno_ui: bool,\n#[arg(long = "table", value_name = "T")]\npub(crate) name: String,\n#[arg(value_name = "N")]\nuser: String,\n#[arg(long, hide = true)]\nx: u8,'
    assert _options(source) == {"--no-ui", "--table"}
