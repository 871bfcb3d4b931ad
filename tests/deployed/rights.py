"""What of the functions' rights was used."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .wire import Call

_LIST = Path(__file__).with_name("unused.txt")

#: The emulator writes logs and reads the stream itself, and asks no role.
_BY_AWS = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
    "sqs:SendMessage",
}


def expected() -> set[tuple[str, str, str]]:
    """What unused.txt lists."""
    return _listed(lambda line: not line.startswith(("#", "?")))


def depends(right: tuple[str, str, str]) -> bool:
    """Whether it depends on the moment if a right is used: unused.txt has a question mark before such."""
    return any(all(map(fnmatchcase, right, pattern)) for pattern in _listed(lambda line: line.startswith("?")))


def _listed(fits: Callable[[str], bool]) -> set[tuple[str, str, str]]:
    lines = [line.removeprefix("?") for line in _LIST.read_text().splitlines() if line and fits(line)]
    return {tuple(part.strip() for part in line.split("|")) for line in lines}


def unused(roles: Mapping[str, Iterable[Mapping[str, Any]]], calls: Iterable[Call]) -> set[tuple[str, str, str]]:
    """For each statement of each role, the actions that were done to none of its resources, and the resources to which none of its actions was done."""
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
    """What stands behind the account, or of S3 the bucket and the key."""
    return re.sub(r"^arn:aws:[a-z0-9-]*:[a-z0-9-]*:[0-9]*:", "", arn)
