"""Changes of a stack that would lose data, or the URL that clients use."""

from collections.abc import Iterable, Mapping
from typing import Any

_WHY = {
    "AWS::DynamoDB::Table": "the stack would use a new, empty table",
    "AWS::S3::Bucket": "the stack would use a new, empty bucket",
    "AWS::ApiGatewayV2::Api": "clients would need a new URL",
}


def refused(changes: Iterable[Mapping[str, Any]], allowed: set[str], command: str = "make deploy ALLOW=") -> list[str]:
    """Describes the changes that are refused. `command` is the command that allows them."""
    found = []
    for change in changes:
        of = change["ResourceChange"]
        kind, name = of["ResourceType"], of["LogicalResourceId"]
        if kind not in _WHY or name in allowed:
            continue
        is_replaced = of["Action"] == "Modify" and of.get("Replacement", "False") != "False"
        if of["Action"] == "Remove":
            found.append(f"{name} would be removed from the stack. To allow this: {command}{name}")
        elif is_replaced:
            found.append(f"{name} would be replaced: {_WHY[kind]}. To allow this: {command}{name}")
    return found
