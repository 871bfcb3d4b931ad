"""What may differ between two servers with the same data is taken out of the lines of a page; the rest is compared."""

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
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
    (r"(\d+|an?|one) (second|minute|hour)s? ago|just now", "<time>"),
    (r"^now$", "<time>"),
    (r"\b\d+(\.\d+)?(ms|s|min|m)\b( \d+(\.\d+)?s)?", "<duration>"),
    (r"\b\d+(\.\d+)?(B|KB)\b", "<size>"),
    # A commit, or the begin of the id of a trace.
    (r"\b[0-9a-f]{7,8}\b", "<hex>"),
    # Runs are coloured by their ids.
    (r"#[0-9a-f]{6}\b", "<colour>"),
]


class Allowed:
    """`allowed.yaml`: each entry says what it accepts, by a regular expression for the whole of a line, and why. Those for another user
    interface (`ui`, its version) are left out."""

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
    """The lines with placeholders for ids, times, durations and sizes."""
    plain_lines = []
    for line in lines:
        for pattern, placeholder in _PLACEHOLDERS:
            line = re.sub(pattern, placeholder, line)
        plain_lines.append(line)
    return plain_lines


def differences(reference: list[str], subject: list[str], any_order: bool = False) -> list[str]:
    """Lines that only one side has, or has elsewhere: "- " before those of the reference, "+ " before the subject's."""
    sides = [sorted(lines) if any_order else lines for lines in (plain(reference), plain(subject))]
    return [line for line in difflib.unified_diff(*sides, n=0, lineterm="") if not line.startswith(("---", "+++", "@@"))]
