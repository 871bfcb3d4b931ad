"""Changes of a stack by which data, or the URL that clients know, would be lost."""

from collections.abc import Iterable, Mapping
from typing import Any

_WHY = {
    "AWS::DynamoDB::Table": "a new, empty table would take its place",
    "AWS::S3::Bucket": "a new, empty bucket would take its place",
    "AWS::ApiGatewayV2::Api": "clients would have to be told another URL",
}


def refused(changes: Iterable[Mapping[str, Any]], allowed: set[str], command: str = "make deploy ALLOW=") -> list[str]:
    """What of them may not be done, in words. `command` is what allows it all the same."""
    found = []
    for change in changes:
        of = change["ResourceChange"]
        kind, name = of["ResourceType"], of["LogicalResourceId"]
        if kind not in _WHY or name in allowed:
            continue
        is_replaced = of["Action"] == "Modify" and of.get("Replacement", "False") != "False"
        if of["Action"] == "Remove":
            found.append(f"{name} would leave the stack. If that is meant: {command}{name}")
        elif is_replaced:
            found.append(f"{name} would be made anew: {_WHY[kind]}. If that is meant: {command}{name}")
    return found
