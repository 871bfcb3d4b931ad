"""The list of differences we accept, each with the reason why.

An entry has a `scenario` (file name), a `step` and a `field` (glob patterns), a `reason`, and optionally
what the answers must look like for it to apply: `reference_status`, `subject_status` (regular expressions)
and `subject` (regular expression for the value the subject gives). The last three keep an entry from
excusing more than was meant. An entry that excuses nothing is an error: the list shrinks by itself.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from tests.compare.differences import Difference
from tests.support.http import Answer

_FILE = Path(__file__).with_name("allowed.yaml")


@dataclass(frozen=True)
class Entry:
    scenario: str
    step: str
    field: str
    reason: str
    reference_status: str = ".*"
    subject_status: str = ".*"
    subject: str = ".*"

    def excuses(self, step: str, difference: Difference, reference: Answer, subject: Answer) -> bool:
        return (
            _glob(step, self.step)
            and _glob(difference.field, self.field)
            and re.fullmatch(self.reference_status, str(reference.status)) is not None
            and re.fullmatch(self.subject_status, str(subject.status)) is not None
            and re.fullmatch(self.subject, str(difference.subject), re.DOTALL) is not None
        )


class AllowList:
    """The entries for one scenario, and which of them have been needed."""

    def __init__(self, entries: list[Entry]):
        self._entries = entries
        self._needed: set[Entry] = set()

    def excuse(self, step: str, difference: Difference, reference: Answer, subject: Answer) -> bool:
        matching = [entry for entry in self._entries if entry.excuses(step, difference, reference, subject)]
        self._needed.update(matching)
        return bool(matching)

    def unneeded(self) -> list[Entry]:
        return [entry for entry in self._entries if entry not in self._needed]


def load_entries(file: Path = _FILE) -> list[Entry]:
    """All entries of the file; an unknown or missing key is an error."""
    return [Entry(**fields) for fields in yaml.safe_load(file.read_text()) or []]


def _glob(text: str, pattern: str) -> bool:
    """fnmatch, with [ taken literally: fields have indexes and steps have cases in brackets."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))
