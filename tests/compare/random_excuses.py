"""Differences of random requests that are accepted, each with its reason."""

import re
from dataclasses import dataclass

from tests.compare.differences import Difference
from tests.support.http import Answer

_CRASH = re.compile(r"\s*(<!doctype html>.*|Internal Server Error)", re.DOTALL)
#: The fields of an error besides those that clients read.
_CLASSIFICATION = {"body.sqlstate", "body.error_class"}


@dataclass(frozen=True)
class Accepted:
    """A difference between two errors. A response is given by its status and a pattern for its whole
    message, which is `None` for the page of an unknown path.
    """

    reason: str
    reference: tuple[int, str]
    ours: tuple[int, str | None]

    def accepts(self, reference: Answer, subject: Answer) -> bool:
        return _fits(self.reference, reference) and _fits(self.ours, subject)


def _fits(expected: tuple[int, str | None], answer: Answer) -> bool:
    status, pattern = expected
    if answer.status != status:
        return False
    if pattern is None:
        return answer.kind == "html"
    message = _message(answer)
    return message is not None and re.fullmatch(pattern, message, re.DOTALL) is not None


def _message(answer: Answer) -> str | None:
    message = answer.body.get("message") if isinstance(answer.body, dict) else None
    return message if isinstance(message, str) else None


_UNREADABLE = r"('content\.tar\.gz' is not a readable tar archive|Archive is malformed)[:.].*"
_CLAUSES = r"Invalid clause\(s\) in filter string: .*"
_MISTAKES = r"Invalid (comparator|order|ordering) .*"
_ACTIVE = r"Cannot delete MCP server '.*' while it still has an active version \(.*"

ACCEPTED = [
    Accepted(
        "the message about invalid metadata of a registration has no links to pydantic's documentation",
        (400, r"Invalid registration metadata: .*https://errors\.pydantic\.dev/.*"),
        (400, r"Invalid registration metadata: .*"),
    ),
    Accepted("the reason why an archive cannot be read is in the words of another library", (400, _UNREADABLE), (400, _UNREADABLE)),
    Accepted(
        "MLflow reads a longer path as the name of a server; for our server, it is an unknown path",
        (404, r"(MCPServer not found \(name=|MCP server |MCP server version )'[^']+/[^']+/.*"),
        (404, None),
    ),
    Accepted("a path without the key of a tag is an unknown path", (404, r"Tag '' not found on .*|MCP server version '.*' version '.*' not found"), (404, None)),
    Accepted(
        "a path without the key of a tag is an unknown path",
        (400, r"Invalid value \"\" for parameter 'key' supplied: .*|Invalid request: path\.version: .*"),
        (404, None),
    ),
    Accepted(
        "an access endpoint of another server is reported as missing",
        (404, r"MCPAccessEndpoint .* does not belong to server .*"),
        (404, r"MCPAccessEndpoint .*not found.*"),
    ),
    Accepted("one of several active versions is named", (400, _ACTIVE), (400, _ACTIVE)),
    Accepted(
        "a key in upper case is refused as a part of its clause",
        (400, r"Invalid attribute key 'VERSION' specified\. .*"),
        (400, r"Invalid clause\(s\) in filter string: .*'VERSION'.*"),
    ),
    Accepted("a mistake in a filter is quoted by another parser", (400, _CLAUSES), (400, _CLAUSES)),
    Accepted("of two mistakes in a filter and an order, another one is reported", (400, _MISTAKES), (400, _MISTAKES)),
    Accepted("a list as the value of a comparison is refused before it reaches the database", (400, "<database error>"), (400, r"Invalid comparator .*")),
]

#: MLflow compares the digits of a time with a pattern.
_REFUSED = re.compile(r"Invalid comparator 'ILIKE' for attribute '(created_at|last_updated_at)'\.")
#: An id of an experiment with white space, as the client spelled it.
_SPELLED = re.compile(r"' <experiment")


class Excuses:
    """Accepts the differences of this module, and counts the responses to which that applies."""

    def __init__(self) -> None:
        self.excused_steps = 0

    def excuse(self, _step: str, found: list[Difference], reference: Answer, subject: Answer) -> list[Difference]:
        """Returns the differences that are not accepted."""
        if _is_accepted(reference, subject):
            left = []
        else:
            left = [difference for difference in found if not _is_insignificant(difference, reference, subject)]
        self.excused_steps += len(left) < len(found)
        return left


def _is_accepted(reference: Answer, subject: Answer) -> bool:
    if _is_crash(reference) and _is_refusal(subject):
        return True
    if reference.status == 200 and _REFUSED.fullmatch(_message(subject) or ""):
        return True
    return any(accepted.accepts(reference, subject) for accepted in ACCEPTED)


def _is_insignificant(difference: Difference, reference: Answer, subject: Answer) -> bool:
    # MLflow's reader of forms returns errors without a classification.
    if difference.field in _CLASSIFICATION and reference.status == subject.status == 400:
        return reference.body.get("error_code") == subject.body.get("error_code") == "BAD_REQUEST"
    # MLflow's messages repeat the id of an experiment as the client spelled it.
    return difference.field == "body.message" and _SPELLED.sub("'<experiment", difference.reference) == difference.subject


def _is_crash(answer: Answer) -> bool:
    """Returns whether MLflow has failed without a response of its own."""
    return answer.status == 500 and answer.kind in ("html", "plain") and _CRASH.fullmatch(answer.body) is not None


def _is_refusal(answer: Answer) -> bool:
    """Returns whether a response tells the client what is wrong with the request."""
    return answer.status in (400, 404) and answer.kind == "json" and bool(answer.body.get("message"))
