"""The differences that are accepted, one file per scenario in `allowed/`; README.md describes the entries.

An entry says what both sides answer, to how many steps, and why. It accepts nothing else: another status, code or
message on either side is a difference again, and so is one step more or less.
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

#: No message says this; a pattern that takes it would take anything.
_NONSENSE = "no server says this: xyzzy\n42"
#: What an error says, and what else follows from its code.
_ERROR_FIELDS = {"error_code", "message"}
_FIELDS_OF_CODE = {"sqlstate", "error_class"}


@dataclass(frozen=True)
class Expected:
    """What one side answers. The patterns are regular expressions for the whole text, placeholders put in."""

    status: int
    kind: str = "json"
    #: Of an error that is JSON: its code and a pattern for its message.
    error_code: str | None = None
    message: str | None = None
    #: Of any other answer: a pattern for its body as JSON text with sorted keys, or for its text.
    body: str | None = None
    #: Where one field differs: a pattern for it as JSON text.
    value: str | None = None

    def check(self, of_field: bool) -> None:
        """Refuse what would bind the answer to nothing."""
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
                raise ValueError(f"the pattern {pattern!r} takes anything")

    def fits(self, answer: Answer) -> bool:
        """Whether this is the answer; the value of a field is looked at elsewhere."""
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
    """One accepted difference: whole answers, or one `field` of answers that both succeed."""

    step: tuple[str, ...]
    steps: int
    reference: Expected
    ours: Expected
    reason: str
    field: str | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Entry":
        """An entry as it is in a file; unknown and missing fields are errors."""
        step = fields["step"]
        sides = {side: Expected(**fields[side]) for side in ("reference", "ours")}
        entry = cls(**fields | sides | {"step": (step,) if isinstance(step, str) else tuple(step)})
        for side in sides.values():
            side.check(entry.field is not None)
        if entry.steps < 1 or not entry.reason.strip():
            raise ValueError(f"an entry without steps or reason: {fields}")
        return entry

    def concerns(self, step: str, reference: Answer, subject: Answer) -> bool:
        """Whether both sides have answered this step as the entry says."""
        named = any(_glob(step, pattern) for pattern in self.step)
        return named and self.reference.fits(reference) and self.ours.fits(subject)

    def accepts(self, difference: Difference, both_are_errors: bool) -> bool:
        """Whether a difference between two answers that the entry concerns is the one that is meant."""
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
    """The entries of one scenario, and to which steps they have applied."""

    def __init__(self, entries: Iterable[Entry]):
        self._entries = list(entries)
        self._applied: dict[Entry, int] = dict.fromkeys(self._entries, 0)
        self.excused_steps = 0

    def excuse(
        self, step: str, found: list[Difference], reference: Answer, subject: Answer
    ) -> list[Difference]:
        """What no entry accepts. Counts the answers that differ and are accepted."""
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
        """One text per entry that has applied to fewer or more steps than it says; of a sample, to more."""
        return [
            f"{' or '.join(entry.step)}: accepted in {applied} steps, expected {entry.steps}: {entry.reason}"
            for entry, applied in self._applied.items()
            if applied > entry.steps or (applied < entry.steps and not is_sample)
        ]


def load_entries(scenario: str) -> list[Entry]:
    """The entries of a scenario; there may be none."""
    file = DIRECTORY / f"{scenario}.yaml"
    return [Entry.of(fields) for fields in yaml.safe_load(file.read_text())] if file.is_file() else []


def text_of(value: Any) -> str:
    """A value as the patterns see it: JSON with sorted keys; NaN is bare, as the number is, and unlike the text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _matches(pattern: str, text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(pattern, text, re.DOTALL) is not None


def _must_be(condition: bool, expected: Expected, what: str) -> None:
    if not condition:
        raise ValueError(f"{expected} has to say {what}")


def _glob(text: str, pattern: str) -> bool:
    """fnmatch, with [ taken literally: fields have indexes and steps have cases in brackets."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))
