"""Whether the stack's table has the layout that these functions write (`docs/adr/0053-layouts-and-migrations.md`)."""

import re
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

#: In an archive, which has no source, a file of its own has the number.
_ARCHIVED = Path(__file__).with_name("layout.txt")
_SOURCE = Path(__file__).resolve().parents[2] / "shared/storage/entities/src/layout.rs"
_CURRENT = re.compile(r"^pub const CURRENT: i64 = (\d+);$", re.MULTILINE)
_KEY = {"PK": {"S": "CONFIG"}, "SK": {"S": "CFG#layout"}}


def current() -> int:
    """The layout of this version."""
    if _ARCHIVED.exists():
        return int(_ARCHIVED.read_text())
    return int(_CURRENT.search(_SOURCE.read_text())[1])


def problem(dynamodb: Any, table: str) -> str | None:
    """Why the functions of this version would refuse the table. One that cannot be read is looked at again by the functions."""
    found = _of(dynamodb, table)
    if isinstance(found, int) and found > current():
        return f"The table {table} was written by a later version: it has layout {found}, and this version knows layout {current()}. Deploy that version."
    return None


def advice(dynamodb: Any, table: str, command: str) -> str | None:
    """What an operator has to do about the table's layout, if anything; `command` migrates it."""
    found = _of(dynamodb, table)
    if isinstance(found, ClientError):
        return f"Whether the table has to be migrated could not be seen ({found}). This says so, and migrates it: {command}"
    if found is None or found >= current():
        return None
    return f"The table has layout {found}, and this version has layout {current()}. In a quarter of an hour, when no earlier function answers any more, run: {command}"


def _of(dynamodb: Any, table: str) -> int | ClientError | None:
    """The layout of a table. An empty one has none: the functions write it with the first experiment."""
    try:
        item = dynamodb.get_item(TableName=table, Key=_KEY, ConsistentRead=True).get("Item")
    except ClientError as error:
        return error
    return int(item["layout"]["N"]) if item else None
