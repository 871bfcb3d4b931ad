"""What two answers disagree on, and how to print it for a human."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.http import Answer, Request

_SHOWN_CHARACTERS = 600
_ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    """One field that differs, by its path: `status`, `kind`, `body.run.info.status`."""

    field: str
    reference: Any
    subject: Any

    def __str__(self) -> str:
        return f"{self.field}\n      reference: {_shown(self.reference)}\n      subject:   {_shown(self.subject)}"


def differences(reference: Answer, subject: Answer) -> list[Difference]:
    """Compare two answers whose placeholders have been put in."""
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
    """A request the way one would want to read it in a report."""
    query = f" ? {json.dumps(request.query)}" if request.query else ""
    headers = {name: value for name, value in request.headers.items() if value != "application/json"}
    lines = [f"{request.method} {request.path}{query}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if request.body is not None:
        lines.append(_shown(request.body.decode(errors="replace")))
    return "\n    ".join(lines)


def _is_page(answer: Answer) -> bool:
    """An HTML page is for people: that it is one matters, its words do not."""
    return answer.kind == "html" and "<" in answer.body


def compare_values(path: str, reference: Any, subject: Any) -> Iterator[Difference]:
    """Compare two pieces of plain data; the path says where in an answer they stand."""
    if isinstance(reference, dict) and isinstance(subject, dict):
        for key in reference | subject:
            yield from compare_values(f"{path}.{key}", reference.get(key, _ABSENT), subject.get(key, _ABSENT))
    elif isinstance(reference, list) and isinstance(subject, list):
        if len(reference) != len(subject):
            yield Difference(f"{path}.length", len(reference), len(subject))
        for index, (left, right) in enumerate(zip(reference, subject)):
            yield from compare_values(f"{path}[{index}]", left, right)
    # repr and not ==: 1 is not 1.0 on the wire, 0.0 is not -0.0, and NaN is NaN.
    elif repr(reference) != repr(subject):
        yield Difference(path, reference, subject)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
