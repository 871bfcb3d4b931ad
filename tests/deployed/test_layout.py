"""Tests what `make deploy` reports about the layout of the stack's table."""

import sys

import pytest
from botocore.exceptions import ClientError

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import advice  # noqa: E402
import layout  # noqa: E402

_COMMAND = advice.migration({"TableName": "data", "AccessTableName": "users"}, "https://dynamodb.eu-central-1.amazonaws.com")


class _Table:
    """A table with this layout."""

    def __init__(self, number: int | None):
        self._number = number

    def get_item(self, TableName: str, Key: dict, ConsistentRead: bool) -> dict:  # noqa: N803
        assert (TableName, Key, ConsistentRead) == ("data", {"PK": {"S": "CONFIG"}, "SK": {"S": "CFG#layout"}}, True)
        return {} if self._number is None else {"Item": {"layout": {"N": str(self._number)}}}


class _Refused:
    def get_item(self, **_: object) -> dict:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem")


def _said(table: object) -> tuple[str | None, str | None]:
    return layout.problem(table, "data"), layout.advice(table, "data", _COMMAND)


@pytest.mark.parametrize("number", [None, layout.current()])
def test_nothing_is_said_of_a_table_of_this_version(number: int | None):
    assert _said(_Table(number)) == (None, None)


def test_a_table_of_an_earlier_version_is_to_be_migrated():
    problem, said = _said(_Table(layout.current() - 1))
    assert problem is None
    assert f"has layout {layout.current() - 1}" in said
    assert said.endswith("mlflow-serverless migrate --dynamodb-endpoint https://dynamodb.eu-central-1.amazonaws.com --table data --access-table users")


def test_a_table_of_a_later_version_is_no_place_for_these_functions():
    problem, said = _said(_Table(layout.current() + 1))
    assert f"has layout {layout.current() + 1}, and this version supports layout {layout.current()}" in problem
    assert said is None


def test_a_table_that_cannot_be_read_stops_no_deployment():
    problem, said = _said(_Refused())
    assert problem is None
    assert "AccessDenied" in said and said.endswith(_COMMAND)
