"""Tests that each of the three checks of `make deny` refuses what deny.toml does not allow, and
nothing else.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_RULES = (_REPOSITORY / "deny.toml").read_text()

Check = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Returns a function that runs a check on a manifest, with some rules replaced."""

    def check(name: str, manifest: Path, replaced: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        rules = _RULES
        for old, new in (replaced or {}).items():
            assert old in rules, f"deny.toml has no {old}"
            rules = rules.replace(old, new)
        (tmp_path / "deny.toml").write_text(rules)
        # cargo finds its subcommand `deny` next to this Python.
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        command = ["cargo", "deny", "--manifest-path", str(manifest)]
        command += ["--config", str(tmp_path / "deny.toml"), "check", name]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    return check


def _crate(directory: Path, fields: str) -> Path:
    """Creates an empty crate, and returns its manifest."""
    (directory / "src").mkdir(parents=True)
    (directory / "src/lib.rs").touch()
    manifest = directory / "Cargo.toml"
    manifest.write_text(f'[package]\nname = "{directory.name}"\nversion = "1.0.0"\nedition = "2024"\npublish = false\n{fields}\n')
    return manifest


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [("Apache-2.0", True), ("MIT OR GPL-3.0-only", True), ("GPL-3.0-only", False), ("MIT AND GPL-3.0-only", False)],
)
def test_licences(check: Check, tmp_path: Path, licence: str, allowed: bool):
    done = check("licenses", _crate(tmp_path / "licensed", f'license = "{licence}"'))
    assert (done.returncode == 0) == allowed, done.stderr
    assert ("rejected" in done.stderr) != allowed


def test_a_crate_without_a_licence(check: Check, tmp_path: Path):
    done = check("licenses", _crate(tmp_path / "unlicensed", ""))
    assert done.returncode != 0 and "unlicensed" in done.stderr


def test_a_licence_that_dependencies_have_and_the_rules_do_not(check: Check):
    done = check("licenses", _REPOSITORY / "Cargo.toml", {'"MIT", ': ""})
    assert done.returncode != 0 and "rejected" in done.stderr


def test_the_engine_in_anything_but_the_program(check: Check, tmp_path: Path):
    _crate(tmp_path / "embedded-engine", 'license = "MIT"')
    dependency = '[dependencies]\nembedded-engine = { path = "../embedded-engine" }'
    allowed = check("bans", _crate(tmp_path / "mlflow-serverless", f'license = "MIT"\n{dependency}'))
    assert allowed.returncode == 0, allowed.stderr
    refused = check("bans", _crate(tmp_path / "tracking", f'license = "MIT"\n{dependency}'))
    assert refused.returncode != 0 and "banned" in refused.stderr


def test_an_unknown_registry(check: Check):
    done = check("sources", _REPOSITORY / "Cargo.toml", {"[sources]": "[sources]\nallow-registry = []"})
    assert done.returncode != 0 and "source-not-allowed" in done.stderr
