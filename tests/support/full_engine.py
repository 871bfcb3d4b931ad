"""An engine with a full partition. It refuses writes that make the partition larger, like DynamoDB
if a partition of a table with local indexes has reached 10 GB.
"""

import json
import threading
from typing import Any

from botocore.session import Session

from tests.support.engine import Engine
from tests.support.engine_proxy import Answer, EngineProxy, Headers

_TABLE = "mlflow"
_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_SAID = "Collection size exceeded."
_Items = dict[str, dict[str, Any]]


class FullEngine(EngineProxy):
    """Undoes and refuses writes that make a full partition larger. Sizes do not include copies in
    local indexes, unlike those of DynamoDB.
    """

    def __init__(self, engine: Engine):
        self._full: tuple[str, int] | None = None
        self._lock = threading.Lock()
        self.refused = 0
        super().__init__(engine)
        self._table = Session().create_client(
            "dynamodb",
            region_name="local",
            endpoint_url=engine.url,
            aws_access_key_id=engine.access_key,
            aws_secret_access_key=engine.secret,
        )

    def fill(self, partition: str) -> None:
        """Makes the partition full at its current size."""
        self._full = partition, _size(self._items(partition))

    def answer(self, headers: Headers, body: bytes) -> Answer:
        operation = next(value for name, value in headers if name.lower() == "x-amz-target").split(".")[-1]
        if self._full is None or operation not in _WRITES or f'"{self._full[0]}"'.encode() not in body:
            return self.forward(headers, body)
        partition, most = self._full
        with self._lock:
            before = self._items(partition)
            answer = self.forward(headers, body)
            after = self._items(partition)
            if _size(after) <= max(most, _size(before)):
                return answer
            self._undo(before, after)
        self.refused += 1
        return 400, "application/x-amz-json-1.0", _refusal(operation, body)

    def _items(self, partition: str) -> _Items:
        pages = self._table.get_paginator("query").paginate(
            TableName=_TABLE,
            KeyConditionExpression="PK = :p",
            ExpressionAttributeValues={":p": {"S": partition}},
            ConsistentRead=True,
        )
        return {item["SK"]["S"]: item for page in pages for item in page["Items"]}

    def _undo(self, before: _Items, after: _Items) -> None:
        for key, item in after.items():
            if key not in before:
                self._table.delete_item(TableName=_TABLE, Key={"PK": item["PK"], "SK": item["SK"]})
        for key, item in before.items():
            if after.get(key) != item:
                self._table.put_item(TableName=_TABLE, Item=item)


def _refusal(operation: str, body: bytes) -> bytes:
    refused: dict[str, Any] = {"__type": "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException"}
    if operation == "TransactWriteItems":
        refused["__type"] = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
        reason = {"Code": "ItemCollectionSizeLimitExceeded", "Message": _SAID}
        refused["CancellationReasons"] = [reason for _ in json.loads(body)["TransactItems"]]
    return json.dumps(refused | {"message": _SAID}).encode()


def _size(items: _Items) -> int:
    return sum(len(name.encode()) + _size_of(value) for item in items.values() for name, value in item.items())


def _size_of(value: Any) -> int:
    """Returns the size of an attribute's value, or of a part of it."""
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
        case dict():
            # A map with names of its own, or the type descriptor of a value.
            types = value.keys() <= {"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"}
            return sum((0 if types else len(name.encode())) + _size_of(inner) for name, inner in value.items())
        case list() | tuple() | set():
            return sum(_size_of(inner) for inner in value)
        case _:
            return 1
