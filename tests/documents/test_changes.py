"""Tests that fragments of the changelog have a known kind, and are added to the correct section."""

import re
from pathlib import Path

import pytest

from tools.changelog import KINDS, REPOSITORY, collected, fragments, released

_CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n\n### Fixed\n\n- Two.\n\n## [1.0.0]\n\n### Added\n\n- Old.\n"


def test_the_fragments_can_be_collected() -> None:
    found = fragments(REPOSITORY / "changes")
    texts = {kind: [path.read_text("utf-8") for path in paths] for kind, paths in found.items()}
    changelog = collected((REPOSITORY / "CHANGELOG.md").read_text("utf-8"), texts)
    for items in texts.values():
        for item in items:
            assert item.strip() in changelog
            for target in re.findall(r"\]\(([^)\s#]+)", item):
                assert "://" in target or (REPOSITORY / target).exists(), target


def test_items_go_to_the_end_of_their_section() -> None:
    texts = {"added": ["- A.\n"], "changed": ["- C.\n"], "fixed": ["- F.\n", "- G.\n"], "removed": []}
    assert collected(_CHANGELOG, texts) == (
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n- A.\n\n### Fixed\n\n- Two.\n- F.\n- G.\n\n"
        "### Changed\n\n- C.\n\n## [1.0.0]\n\n### Added\n\n- Old.\n"
    )
    assert collected("## [Unreleased]\n", {"added": ["- A."]}) == "## [Unreleased]\n\n### Added\n\n- A.\n"
    with pytest.raises(ValueError, match="Unreleased"):
        collected("# Changelog\n", texts)


def test_no_fragment_changes_nothing() -> None:
    assert collected(_CHANGELOG, {kind: [] for kind in KINDS}) == _CHANGELOG


def test_a_release_has_all_that_was_not_released() -> None:
    changelog = released(_CHANGELOG, "1.1.0", "2030-01-31")
    assert changelog == _CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [1.1.0] - 2030-01-31\n")
    # The next fragment is added above the release.
    later = collected(changelog, {"added": ["- Three.\n"]})
    assert later.index("- Three.") < later.index("## [1.1.0]")
    for text, version in [(changelog, "1.2.0"), (_CHANGELOG, "1.0.0"), (_CHANGELOG, "v2"), ("# Changelog\n", "1.1.0")]:
        with pytest.raises(ValueError):
            released(text, version, "2030-01-31")


@pytest.mark.parametrize(("name", "text"), [("a.md", "- A."), ("a.news.md", "- A."), ("a.added.md", "A.")])
def test_a_fragment_without_a_kind_or_an_item_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=re.escape(name)):
        fragments(tmp_path)
