"""Checks whether the stack's table has the layout that these functions write
(`docs/adr/0053-layouts-and-migrations.md`).
"""

import re
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

#: An archive has no sources, so it stores the number in a separate file.
_ARCHIVED = Path(__file__).with_name("layout.txt")
_SOURCE = Path(__file__).resolve().parents[2] / "shared/storage/entities/src/layout.rs"
_CURRENT = re.compile(r"^pub const CURRENT_LAYOUT: i64 = (\d+);$", re.MULTILINE)
_KEY = {"PK": {"S": "CONFIG"}, "SK": {"S": "CFG#layout"}}


def current() -> int:
    """Returns the layout of this version."""
    if _ARCHIVED.exists():
        return int(_ARCHIVED.read_text())
    return int(_CURRENT.search(_SOURCE.read_text())[1])


def problem(dynamodb: Any, table: str) -> str | None:
    """Explains why the functions of this version would refuse the table. A table that cannot be
    read is checked later by the functions.
    """
    found = _of(dynamodb, table)
    if isinstance(found, int) and found > current():
        return f"The table {table} was written by a later version: it has layout {found}, and this version supports layout {current()}. Deploy the later version."
    return None


def advice(dynamodb: Any, table: str, command: str) -> str | None:
    """Explains what an operator has to do about the table's layout, if anything. `command` migrates
    the table.
    """
    found = _of(dynamodb, table)
    if isinstance(found, ClientError):
        return f"Cannot check whether the table has to be migrated ({found}). To check and migrate it, run: {command}"
    if found is None or found >= current():
        return None
    return f"The table has layout {found}, and this version has layout {current()}. In 15 minutes, when no function of an earlier version is running any more, migrate it: {command}"


def _of(dynamodb: Any, table: str) -> int | ClientError | None:
    """Returns the layout of a table. An empty table has none, because the functions write it with
    the first experiment.
    """
    try:
        item = dynamodb.get_item(TableName=table, Key=_KEY, ConsistentRead=True).get("Item")
    except ClientError as error:
        return error
    return int(item["layout"]["N"]) if item else None
