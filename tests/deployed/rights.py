"""Determines which permissions of the functions were used."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .wire import Call

LIST = Path(__file__).with_name("unused.txt")

#: Actions that the emulator performs itself, without the role: it writes logs and reads the stream.
_BY_AWS = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
    "sqs:SendMessage",
}


Right = tuple[str, str, str]


def expected() -> set[Right]:
    """Returns the permissions listed in unused.txt."""
    return {right for mark, right, _ in read_list(LIST.read_text()) if not mark}


def depends(right: Right) -> bool:
    """Returns whether the use of a permission depends on timing. In unused.txt, such permissions
    begin with a question mark.
    """
    return any(mark and all(map(fnmatchcase, right, pattern)) for mark, pattern, _ in read_list(LIST.read_text()))


def read_list(text: str) -> list[tuple[str, Right, str]]:
    """Parses each line to its mark, the permission, and the case in which the permission is used.
    Refuses lines without a case.
    """
    found = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        said, _, case = line.partition("#")
        parts = tuple(part.strip() for part in said.removeprefix("?").split("|"))
        if len(parts) != 3 or not case.strip():
            raise ValueError(f"not a right and the case in which it is used: {line}")
        found.append(("?" if line.startswith("?") else "", parts, case.strip()))
    return found


def unused(roles: Mapping[str, Iterable[Mapping[str, Any]]], calls: Iterable[Call]) -> set[Right]:
    """Returns, for each statement of each role, the actions that were not performed on any of its
    resources, and the resources on which none of its actions was performed.
    """
    done = {(call.caller, call.action, call.resource) for call in calls}
    left = set()
    for function, statements in roles.items():
        own = [(action, resource) for caller, action, resource in done if caller == function]
        for statement in statements:
            actions, resources = _list(statement["Action"]), [_end(arn) for arn in _list(statement["Resource"])]
            fitting = [(action, wanted) for action, of in own if action in actions for wanted in resources if fnmatchcase(of, wanted)]
            left |= {(function, action, " ".join(resources)) for action in set(actions) - {action for action, _ in fitting} - _BY_AWS}
            if not set(actions) <= _BY_AWS:
                left |= {(function, "", resource) for resource in set(resources) - {resource for _, resource in fitting}}
    return left


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _end(arn: str) -> str:
    """Returns the part of an ARN after the account. For S3, it consists of the bucket
    and the key.
    """
    return re.sub(r"^arn:aws:[a-z0-9-]*:[a-z0-9-]*:[0-9]*:", "", arn)
