"""Tests the checks of log levels and of tags, which the emulator does not support, with clients that
behave as documented by AWS.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from tools.smoke import gateway
from tools.smoke.check import NotAsked


def _logging(level: str, lines: dict[str, list[dict[str, Any]]]) -> Any:
    """Returns a stack with this log level, whose logs have these lines by their level."""
    sent: list[tuple[str, str]] = []

    def log_lines(function: str, word: str, _: float) -> list[dict[str, Any]]:
        assert function == "tracking"
        return lines["INFO"] if word == "INFO" else lines["WARN"] if any(user == word for user, _ in sent) else []

    return SimpleNamespace(
        label="smoke-test-0a1b",
        users="https://users",
        parameter=lambda name: {"ApplicationLogLevel": level}[name],
        call=lambda *_, auth, **__: sent.append(auth),
        wait=lambda condition, _: 1.0 if condition() else None,
        log_lines=log_lines,
    )


@pytest.mark.parametrize(
    "warnings, others, outcome", [([{}], [], "shown"), ([{}], [{}], "INFO as well"), ([], [], "hidden"), ([], [{}], "hidden")]
)
def test_warnings_have_to_be_shown(warnings: list[dict], others: list[dict], outcome: str):
    assert gateway.judge_warnings(gateway._warnings(_logging("WARN", {"WARN": warnings, "INFO": others}))) == outcome


def test_nothing_is_hidden_at_the_usual_level():
    with pytest.raises(NotAsked, match="ApplicationLogLevel=WARN"):
        gateway._warnings(_logging("INFO", {"WARN": [], "INFO": []}))


def _tagged(tags: dict[str, dict[str, str]]) -> Any:
    """Returns a stack with two APIs, and the tags of their resources."""

    def get_tags(ResourceArn: str) -> dict[str, Any]:  # noqa: N803
        start, _, path = ResourceArn.partition("::")
        assert start == "arn:aws:apigateway:eu-central-1"
        return {"Tags": tags[path]}

    client = SimpleNamespace(get_tags=get_tags, meta=SimpleNamespace(partition="aws", region_name="eu-central-1"))
    return SimpleNamespace(tag="mlflow", aws=lambda _: client, resources=lambda _: {"Api": "a1", "UsersApi": "b2"})


_PATHS = ["/apis/a1", "/apis/a1/stages/$default", "/apis/b2", "/apis/b2/stages/$default"]


@pytest.mark.parametrize(
    "without, outcome", [([], "tagged"), (["/apis/a1", "/apis/b2"], "stages alone"), (["/apis/b2/stages/$default"], "not billed by tag")]
)
@pytest.mark.parametrize("wrong", [{}, {"mlflow-stack": "another"}])
def test_the_tags_of_apis_and_stages_are_those_of_the_stack(without: list[str], outcome: str, wrong: dict[str, str]):
    world = _tagged({path: wrong if path in without else {"mlflow-stack": "mlflow"} for path in _PATHS})
    assert gateway.judge_tags(gateway._tags(world)) == outcome
