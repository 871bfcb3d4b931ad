"""Prints what `sam deploy` is told of a stack that does not exist yet: to have an API for users, which an old stack gets only if somebody says so.

`python tools/new_stack.py` looks for the stack of samconfig.toml, in the account and region of the current AWS profile.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

#: Of a stack of which `sam deploy` has made the first plan, and nothing else.
_PLANNED = "REVIEW_IN_PROGRESS"


def main() -> None:
    settings = tomllib.loads((Path(__file__).resolve().parents[1] / "samconfig.toml").read_text())
    try:
        client = boto3.client("cloudformation")
        print(*overrides(client, settings["default"]["global"]["parameters"]["stack_name"]))
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"It cannot be found out whether the stack exists: {error}")


def overrides(client: Any, stack: str) -> list[str]:
    """Arguments for a stack that is new, and none for one that exists."""
    try:
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
        is_new = found["StackStatus"] == _PLANNED
    except ClientError as error:
        said = error.response["Error"]
        if said["Code"] != "ValidationError" or "does not exist" not in said["Message"]:
            raise
        is_new = True
    return ["--parameter-overrides", "Users=on"] if is_new else []


if __name__ == "__main__":
    main()
