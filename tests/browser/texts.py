"""Compares the texts of a page on two servers, without values that may differ."""

import difflib
import re
from pathlib import Path
from typing import Any

import yaml

_PLACEHOLDERS = [
    (r"http://127\.0\.0\.1:\d+", "<server>"),
    (r"\b([md])-[0-9a-f]{32}\b", r"<id of \1>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"\d{1,2}/\d{1,2}/\d{4}(, | )\d{1,2}:\d\d(:\d\d)?( [AP]M)?", "<time>"),
    (r"\b[A-Z][a-z]{2} \d{1,2}, (\d{4}, )?\d{1,2}:\d\d(:\d\d)?( [AP]M)?", "<time>"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
    (r"(\d+|an?|one) (second|minute|hour)s? ago|\b\d+ ?(s|m|min|h) ago|just now", "<time>"),
    (r"^now$", "<time>"),
    (r"\b\d+(\.\d+)?(ms|s|min|m)\b( \d+(\.\d+)?s)?", "<duration>"),
    (r"\b\d+(\.\d+)?(B|KB)\b", "<size>"),
    # A commit, or the beginning of a trace id.
    (r"\b[0-9a-f]{7,8}\b", "<hex>"),
    # Colors of runs, which are derived from their ids.
    (r"#[0-9a-f]{6}\b", "<colour>"),
]


class Allowed:
    """The entries of `allowed.yaml`. Each has a regular expression that matches a whole line, and a
    reason. Entries for another version of the user interface (`ui`) are ignored.
    """

    def __init__(self, file: Path, ui: str):
        entries: list[dict[str, Any]] = yaml.safe_load(file.read_text())
        for entry in entries:
            assert set(entry) <= {"problem", "line", "order", "step", "side", "ui", "reason"} and entry["reason"], entry
        self._entries = [entry for entry in entries if entry.get("ui", ui) == ui]

    def problem(self, step: str, side: str, problem: str) -> bool:
        return any(
            "problem" in entry and re.fullmatch(entry["problem"], problem, re.DOTALL)
            for entry in self._entries
            if re.fullmatch(entry.get("step", ".*"), step) and entry.get("side", side) == side
        )

    def line(self, step: str, line: str) -> bool:
        return any(
            "line" in entry and re.fullmatch(entry["line"], line)
            for entry in self._entries
            if re.fullmatch(entry.get("step", ".*"), step)
        )

    def any_order(self, step: str) -> bool:
        return any(entry.get("order") == "any" and re.fullmatch(entry["step"], step) for entry in self._entries)


def plain(lines: list[str]) -> list[str]:
    """Replaces ids, times, durations and sizes with placeholders."""
    plain_lines = []
    for line in lines:
        for pattern, placeholder in _PLACEHOLDERS:
            line = re.sub(pattern, placeholder, line)
        plain_lines.append(line)
    return plain_lines


def differences(reference: list[str], subject: list[str], any_order: bool = False) -> list[str]:
    """Returns lines that only one side has, or that have a different position. Lines of the
    reference begin with "-", and lines of the subject with "+".
    """
    sides = [sorted(lines) if any_order else lines for lines in (plain(reference), plain(subject))]
    return [line for line in difflib.unified_diff(*sides, n=0, lineterm="") if not line.startswith(("---", "+++", "@@"))]
