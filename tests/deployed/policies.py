"""The policies of a deployer (`tools/deploy/policies`)."""

import json
from fnmatch import fnmatchcase
from typing import Any

from .emulator import ACCOUNT, REPOSITORY

DIRECTORY = REPOSITORY / "tools/deploy/policies"
NAMES = ["deployer", "resources"]


def read_policy(name: str, stack: str, region: str = "*") -> dict[str, Any]:
    """Returns a policy with its placeholders replaced as the guide describes."""
    text = (DIRECTORY / f"{name}.json").read_text()
    return json.loads(text.replace("REGION", region).replace("ACCOUNT", ACCOUNT).replace("STACK", stack))


def allows(policies: list[dict[str, Any]], action: str) -> bool:
    """Returns whether the policies allow an action on any resource."""
    allowed = [pattern for policy in policies for statement in policy["Statement"] for pattern in statement["Action"]]
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in allowed)
