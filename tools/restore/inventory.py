"""How many there are of each kind of row, by the keys that docs/reference/table.md lists."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs/reference/table.md"
_ROW = re.compile(r"^\| (?:`([^`]+)`)? ?\| `([^`]+)` \| (?:\[(\w+)\]\([^)]*\)|(\w+)) \|")


def counted(client: Any, table: str) -> Counter[str]:
    """Reads all keys of a table: half a read unit for each 4 KB of it."""
    found: Counter[str] = Counter()
    kinds = list(read_rows(_PAGE.read_text()))
    names = {"#p": "PK", "#s": "SK"}
    for page in client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="#p, #s", ExpressionAttributeNames=names):
        found.update(kind_of(kinds, item["PK"]["S"], item["SK"]["S"]) for item in page["Items"])
    return found


def kind_of(kinds: list[tuple[str, re.Pattern, re.Pattern]], partition: str, sort: str) -> str:
    return next((name for name, of_partition, of_sort in kinds if of_partition.fullmatch(partition) and of_sort.fullmatch(sort)), "of no kind")


def read_rows(text: str) -> Iterator[tuple[str, re.Pattern, re.Pattern]]:
    """The rows of both tables: of each its name, and patterns of its keys. A cell without a partition key repeats the one above."""
    partition = ""
    for line in text.splitlines():
        if found := _ROW.match(line):
            partition = found[1] or partition
            yield found[3] or found[4], _pattern(partition), _pattern(found[2])


def _pattern(key: str) -> re.Pattern:
    """Segments hold no `#`."""
    return re.compile("".join("[^#]*" if part.startswith("<") else re.escape(part) for part in re.split(r"(<[^>]+>)", key)), re.DOTALL)
