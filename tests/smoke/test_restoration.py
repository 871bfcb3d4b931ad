"""Tests the check that restores a table, which the emulator does not support, with a DynamoDB
client that behaves as documented by AWS.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tools.smoke import cleanup, platform
from tools.smoke.check import NotAsked
from tools.smoke.cleanup import Cleanup
from tools.smoke.spending import Spending, Spent

_KEYS = {"KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}]}


class Tables:
    """A DynamoDB client with the access table. A restored table becomes active after a number of
    polls, and cannot be deleted before.
    """

    def __init__(self, looks: int, size: int = 1000, refusal: str | None = None):
        self._looks, self._refusal, self.is_protected = looks, refusal, False
        self.deleted: list[str] = []
        self.tables: dict[str, dict[str, Any]] = {"access": _KEYS | {"TableStatus": "ACTIVE", "TableSizeBytes": size}}

    def describe_table(self, TableName: str) -> dict[str, Any]:
        if TableName not in self.tables:
            raise _error("ResourceNotFoundException")
        table = self.tables[TableName]
        if table["TableStatus"] == "CREATING":
            self._looks -= 1
            if self._looks <= 0:
                table["TableStatus"] = "ACTIVE"
        return {"Table": dict(table)}

    def restore_table_to_point_in_time(self, SourceTableName: str, TargetTableName: str, UseLatestRestorableTime: bool) -> None:
        if self._refusal:
            raise _error(self._refusal)
        self.tables[TargetTableName] = dict(self.tables[SourceTableName]) | {"TableStatus": "CREATING"}

    def delete_table(self, TableName: str) -> None:
        if self.tables[TableName]["TableStatus"] != "ACTIVE":
            raise _error("ResourceInUseException")
        self.deleted.append(TableName)
        if not self.is_protected:
            del self.tables[TableName]

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda: [{"TableNames": list(self.tables)}])


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "AnyCall")


def _world(tables: Tables, looks: int = 100, restores: bool = True) -> Any:
    def wait(condition, _seconds: float) -> float | None:
        return 1.0 if any(condition() for _ in range(looks)) else None

    return SimpleNamespace(
        restores=restores, stack="mlflow", access_table="access", dynamodb=tables, spending=Spending(), cleanup=Cleanup(), wait=wait
    )


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(platform.time, "sleep", lambda _: None)
    yield


def test_a_table_is_restored_and_deleted():
    tables = Tables(looks=5)
    world = _world(tables)
    facts = platform._restoration(world)
    assert platform.judge_restoration(facts) == "restored"
    [restored] = tables.deleted
    assert restored.startswith("mlflow-smoke-restore-")
    assert tables.tables.keys() == {"access"}
    assert world.spending.dollars >= 0.15
    assert world.cleanup.run() == []
    assert tables.tables.keys() == {"access"}


def test_a_table_that_is_not_ready_yet_is_deleted_when_it_is():
    tables = Tables(looks=9)
    world = _world(tables, looks=3)
    assert platform.judge_restoration(platform._restoration(world)) == "takes longer"
    assert len(tables.tables) == 2
    assert world.cleanup.run() == []
    assert tables.tables.keys() == {"access"}


def test_a_table_that_stays_after_its_deletion_is_reported():
    tables = Tables(looks=1)
    tables.is_protected = True
    assert platform.judge_restoration(platform._restoration(_world(tables))) == "not deleted"


def test_what_a_killed_run_left_is_found():
    tables = Tables(looks=1)
    tables.tables |= {"mlflow-smoke-restore-0a1b": {"TableStatus": "ACTIVE"}, "another-smoke-restore-0a1b": {"TableStatus": "ACTIVE"}}
    assert cleanup._restored(_world(tables)) == ["mlflow-smoke-restore-0a1b"]


def test_nothing_is_restored_that_nobody_asked_for_or_that_costs_too_much():
    with pytest.raises(NotAsked, match="RESTORE=1"):
        platform._restoration(_world(Tables(looks=1), restores=False))
    large = Tables(looks=1, size=50_000_000_000)
    with pytest.raises(Spent):
        platform._restoration(_world(large))
    assert large.tables.keys() == {"access"}


def test_a_missing_right_is_a_reason_and_leaves_nothing():
    world = _world(Tables(looks=1, refusal="AccessDeniedException"))
    with pytest.raises(NotAsked, match="AccessDeniedException"):
        platform._restoration(world)
    assert world.cleanup.run() == []
