"""Compares two responses, and formats the differences."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.http import Answer, Request

_SHOWN_CHARACTERS = 600
_ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    """A field that differs, by its path: `status`, `kind`, `body.run.info.status`."""

    field: str
    reference: Any
    subject: Any

    def __str__(self) -> str:
        return f"{self.field}\n      reference: {_shown(self.reference)}\n      subject:   {_shown(self.subject)}"


def differences(reference: Answer, subject: Answer) -> list[Difference]:
    """Compares two responses after placeholders have been applied."""
    found = []
    if reference.status != subject.status:
        found.append(Difference("status", reference.status, subject.status))
    if reference.kind != subject.kind:
        found.append(Difference("kind", reference.kind, subject.kind))
    found += compare_values("headers", reference.headers, subject.headers)
    if "json" in (reference.kind, subject.kind) or not _is_page(reference):
        found += compare_values("body", reference.body, subject.body)
    return found


def describe(request: Request) -> str:
    """Formats a request for a report."""
    query = f" ? {json.dumps(request.query)}" if request.query else ""
    headers = {name: value for name, value in request.headers.items() if value != "application/json"}
    lines = [f"{request.method} {request.path}{query}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if request.body is not None:
        lines.append(_shown(request.body.decode(errors="replace")))
    return "\n    ".join(lines)


def _is_page(answer: Answer) -> bool:
    """Returns whether the response is an HTML page. The text of pages is not compared, only that
    both sides return one.
    """
    return answer.kind == "html" and "<" in answer.body


def compare_values(path: str, reference: Any, subject: Any) -> Iterator[Difference]:
    """Compares two values of plain data. `path` is their position in the response."""
    if isinstance(reference, dict) and isinstance(subject, dict):
        for key in reference | subject:
            yield from compare_values(f"{path}.{key}", reference.get(key, _ABSENT), subject.get(key, _ABSENT))
    elif isinstance(reference, list) and isinstance(subject, list):
        if len(reference) != len(subject):
            yield Difference(f"{path}.length", len(reference), len(subject))
        for index, (left, right) in enumerate(zip(reference, subject)):
            yield from compare_values(f"{path}[{index}]", left, right)
    # Compares repr instead of the values, so that 1 differs from 1.0, 0.0 from -0.0, and NaN equals
    # NaN.
    elif repr(reference) != repr(subject):
        yield Difference(path, reference, subject)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
