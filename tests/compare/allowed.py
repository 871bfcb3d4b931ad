"""Accepted differences, with one file per scenario in `allowed/`. tests/README.md describes the
entries.

An entry specifies the responses of both sides, the number of steps, and the reason. It accepts
nothing else: a different status, code or message on either side is a new difference, and so is a
different number of steps.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.compare.differences import Difference
from tests.support.http import Answer

DIRECTORY = Path(__file__).with_name("allowed")

#: A text that no message contains. A pattern that matches it would match anything.
_NONSENSE = "no server says this: xyzzy\n42"
#: Fields of an error, and further fields that depend only on its code.
_ERROR_FIELDS = {"error_code", "message"}
_FIELDS_OF_CODE = {"sqlstate", "error_class"}


@dataclass(frozen=True)
class Expected:
    """The expected response of one side. Patterns are regular expressions that match the whole
    text, in which chosen values are already replaced by placeholders.
    """

    status: int
    kind: str = "json"
    #: For an error in JSON: its code, and a pattern for its message.
    error_code: str | None = None
    message: str | None = None
    #: For any other response: a pattern for its body, as JSON with sorted keys or as text.
    body: str | None = None
    #: If the entry is about one field: a pattern for its value as JSON.
    value: str | None = None

    def check(self, of_field: bool) -> None:
        """Raises an error if the expectation is incomplete, or matches any response."""
        if of_field:
            _must_be(self.value is not None and {self.error_code, self.message, self.body} == {None}, self, "value")
        elif self.kind == "html":
            _must_be({self.error_code, self.message, self.body, self.value} == {None}, self, "nothing but a status")
        elif self.status >= 400:
            _must_be(None not in (self.error_code, self.message) and self.body is None, self, "error_code and message")
        else:
            _must_be(self.body is not None and {self.error_code, self.message} == {None}, self, "body")
        for pattern in (self.message, self.body, self.value):
            if pattern is not None and re.fullmatch(pattern, _NONSENSE, re.DOTALL):
                raise ValueError(f"the pattern {pattern!r} matches anything")

    def fits(self, answer: Answer) -> bool:
        """Returns whether the response is the expected one. The value of a field is checked in
        `Entry.accepts`.
        """
        if (answer.status, answer.kind) != (self.status, self.kind):
            return False
        if self.message is not None:
            return (
                isinstance(answer.body, dict)
                and _ERROR_FIELDS <= answer.body.keys() <= _ERROR_FIELDS | _FIELDS_OF_CODE
                and answer.body["error_code"] == self.error_code
                and _matches(self.message, answer.body["message"])
            )
        return self.body is None or _matches(self.body, text_of(answer.body))


@dataclass(frozen=True)
class Entry:
    """An accepted difference, either of whole responses or of one `field` of responses that both
    succeed.
    """

    step: tuple[str, ...]
    steps: int
    reference: Expected
    ours: Expected
    reason: str
    field: str | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Entry":
        """Parses an entry of a file. Unknown and missing fields are errors."""
        step = fields["step"]
        sides = {side: Expected(**fields[side]) for side in ("reference", "ours")}
        entry = cls(**fields | sides | {"step": (step,) if isinstance(step, str) else tuple(step)})
        for side in sides.values():
            side.check(entry.field is not None)
        if entry.steps < 1 or not entry.reason.strip():
            raise ValueError(f"an entry without steps or reason: {fields}")
        return entry

    def concerns(self, step: str, reference: Answer, subject: Answer) -> bool:
        """Returns whether the entry names this step, and both sides have responded as
        it expects.
        """
        named = any(_glob(step, pattern) for pattern in self.step)
        return named and self.reference.fits(reference) and self.ours.fits(subject)

    def accepts(self, difference: Difference, both_are_errors: bool) -> bool:
        """Returns whether the entry accepts this difference between two responses that
        it concerns.
        """
        if self.field is not None:
            return (
                _glob(difference.field, self.field)
                and _matches(self.reference.value or "", text_of(difference.reference))
                and _matches(self.ours.value or "", text_of(difference.subject))
            )
        if both_are_errors:
            fields = _ERROR_FIELDS if self.reference.error_code == self.ours.error_code else _ERROR_FIELDS | _FIELDS_OF_CODE
            return difference.field in {"status", *(f"body.{name}" for name in fields)}
        return True


class AllowList:
    """The entries of a scenario, and the number of steps to which each has applied."""

    def __init__(self, entries: Iterable[Entry]):
        self._entries = list(entries)
        self._applied: dict[Entry, int] = dict.fromkeys(self._entries, 0)
        self.excused_steps = 0

    def excuse(
        self, step: str, found: list[Difference], reference: Answer, subject: Answer
    ) -> list[Difference]:
        """Returns the differences that no entry accepts. Counts the steps in which differences were
        accepted.
        """
        left = list(found)
        for entry in self._entries if found else []:
            if not entry.concerns(step, reference, subject):
                continue
            errors = reference.kind == subject.kind == "json" and min(reference.status, subject.status) >= 400
            kept = [difference for difference in left if not entry.accepts(difference, errors)]
            self._applied[entry] += len(kept) < len(left)
            left = kept
        self.excused_steps += len(left) < len(found)
        return left

    def miscounted(self, is_sample: bool = False) -> list[str]:
        """Describes each entry that has applied to a different number of steps than it specifies.
        In a sample, fewer steps are allowed.
        """
        return [
            f"{' or '.join(entry.step)}: accepted in {applied} steps, expected {entry.steps}: {entry.reason}"
            for entry, applied in self._applied.items()
            if applied > entry.steps or (applied < entry.steps and not is_sample)
        ]


def load_entries(scenario: str) -> list[Entry]:
    """Reads the entries of a scenario. Returns an empty list if it has none."""
    file = DIRECTORY / f"{scenario}.yaml"
    return [Entry.of(fields) for fields in yaml.safe_load(file.read_text())] if file.is_file() else []


def text_of(value: Any) -> str:
    """Converts a value to the text that patterns match: JSON with sorted keys. NaN is written
    without quotes, which distinguishes the number from the string.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _matches(pattern: str, text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(pattern, text, re.DOTALL) is not None


def _must_be(condition: bool, expected: Expected, what: str) -> None:
    if not condition:
        raise ValueError(f"{expected} must have {what}")


def _glob(text: str, pattern: str) -> bool:
    """Matches like fnmatch, except that `[` is literal, because the names of fields and steps
    contain brackets.
    """
    return fnmatchcase(text, pattern.replace("[", "[[]"))
