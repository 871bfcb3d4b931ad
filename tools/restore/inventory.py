"""Counts the rows of each type, by the keys listed in docs/reference/table.md."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs/reference/table.md"
_ROW = re.compile(r"^\| (?:`([^`]+)`)? ?\| `([^`]+)` \| (?:\[(\w+)\]\([^)]*\)|(\w+)) \|")


def counted(client: Any, table: str) -> Counter[str]:
    """Counts the rows of a table by reading all keys. Takes half a read unit for each 4 KB of the
    table.
    """
    found: Counter[str] = Counter()
    kinds = list(read_rows(_PAGE.read_text()))
    names = {"#p": "PK", "#s": "SK"}
    for page in client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="#p, #s", ExpressionAttributeNames=names):
        found.update(kind_of(kinds, item["PK"]["S"], item["SK"]["S"]) for item in page["Items"])
    return found


def kind_of(kinds: list[tuple[str, re.Pattern, re.Pattern]], partition: str, sort: str) -> str:
    return next((name for name, of_partition, of_sort in kinds if of_partition.fullmatch(partition) and of_sort.fullmatch(sort)), "of no kind")


def read_rows(text: str) -> Iterator[tuple[str, re.Pattern, re.Pattern]]:
    """Yields the name and key patterns of each row type of both tables. A row without a
    partition key in its cell has the partition key of the row above."""
    partition = ""
    for line in text.splitlines():
        if found := _ROW.match(line):
            partition = found[1] or partition
            yield found[3] or found[4], _pattern(partition), _pattern(found[2])


def _pattern(key: str) -> re.Pattern:
    """Returns the pattern of a key. Its segments do not contain `#`."""
    return re.compile("".join("[^#]*" if part.startswith("<") else re.escape(part) for part in re.split(r"(<[^>]+>)", key)), re.DOTALL)
