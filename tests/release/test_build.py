"""Tests of the calls of cargo: one for all functions and one for the program, per processor
architecture.
"""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools/release"))
import build  # noqa: E402


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records the commands that would be executed."""
    made: list[list[str]] = []
    monkeypatch.setattr(build.subprocess, "run", lambda command, **_: made.append([str(part) for part in command]))
    return made


def _values(command: list[str], option: str) -> list[str]:
    return [value for name, value in zip(command, command[1:]) if name == option]


def test_functions_are_built_by_one_call_without_the_programs_features(calls: list[list[str]]):
    built = build.functions(REPOSITORY, "arm64", "release")
    [_, command] = calls
    assert _values(command, "--target") == ["aarch64-unknown-linux-gnu"]
    assert _values(command, "--package") == _values(command, "--bin") == list(built)
    assert "mlflow-serverless" not in command and "--features" not in command


def test_the_program_runs_on_any_processor_of_its_kind(calls: list[list[str]]):
    build.program(REPOSITORY, "x86_64", "release")
    [_, command] = calls
    assert _values(command, "--target") == ["x86_64-unknown-linux-musl"]
    assert _values(command, "--package") == ["mlflow-serverless"] and _values(command, "--features") == ["standalone"]
    # Otherwise, cargo-lambda would optimize for Lambda's processors.
    assert "--disable-optimizations" in command


def test_the_program_for_macos_is_linked_by_macos(calls: list[list[str]]):
    built = build.program(REPOSITORY, "arm64", "release", "macos")
    [target, command] = calls
    assert target[-1] == "aarch64-apple-darwin" and command[:2] == ["cargo", "build"]
    assert _values(command, "--target") == ["aarch64-apple-darwin"] and _values(command, "--features") == ["standalone"]
    assert built == Path(_values(command, "--target-dir")[0]) / "aarch64-apple-darwin/release/mlflow-serverless"
