"""Tests how `make restore` parses times and counts rows. tests/deployed/test_deployed.py restores
tables.
"""

import sys
from datetime import datetime, timedelta, timezone

import pytest

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/restore"))
from inventory import kind_of, read_rows  # noqa: E402
from tables import moment_of  # noqa: E402

_NOON = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)


class _Tables:
    """A client of tables with the times that they can be restored to. `None` means that recovery is
    off.
    """

    def __init__(self, **moments: tuple[datetime, datetime] | None):
        self._moments = moments

    def describe_continuous_backups(self, TableName: str) -> dict:
        found = self._moments[TableName]
        said = {"PointInTimeRecoveryStatus": "ENABLED" if found else "DISABLED"}
        if found:
            said |= {"EarliestRestorableDateTime": found[0], "LatestRestorableDateTime": found[1]}
        return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": said}}


@pytest.fixture
def client() -> _Tables:
    hour = timedelta(hours=1)
    return _Tables(data=(_NOON - 5 * hour, _NOON + hour), access=(_NOON - hour, _NOON), bare=None)


@pytest.mark.parametrize(
    "said, expected",
    [
        ("2030-01-31T11:30:00Z", _NOON - timedelta(minutes=30)),
        ("2030-01-31T12:30:00+01:00", _NOON - timedelta(minutes=30)),
        # The latest time that both tables can be restored to.
        ("latest", _NOON),
    ],
)
def test_a_moment_is_one_of_both_tables(client: _Tables, said: str, expected: datetime):
    assert moment_of(client, ["data", "access"], said) == expected


@pytest.mark.parametrize(
    "said, why",
    [
        ("2030-01-31T10:30:00Z", "from 2030-01-31T11:00:00"),
        ("2030-01-31T12:30:00Z", "to 2030-01-31T12:00:00"),
        ("2030-01-31T11:30:00", "no time zone"),
        ("yesterday", "not a point in time"),
    ],
)
def test_another_moment_is_refused(client: _Tables, said: str, why: str):
    with pytest.raises(ValueError, match=why):
        moment_of(client, ["data", "access"], said)


def test_a_table_without_recovery_is_refused(client: _Tables):
    with pytest.raises(ValueError, match="bare has no point-in-time recovery"):
        moment_of(client, ["data", "bare"], "latest")


def test_each_row_of_both_tables_is_known_by_its_keys():
    kinds = list(read_rows((REPOSITORY / "docs/reference/table.md").read_text()))
    assert {"Experiment", "Run", "TraceOfSession", "Trace", "User", "Session", "Token", "Secret"} <= {name for name, _, _ in kinds}
    assert len(kinds) > 60
    for partition, sort, kind in [
        ("EXP#7", "E#META", "Experiment"),
        ("EXP#7", "R#abc", "Run"),
        ("EXP#7", "R#abc#PARAM#p", "RunParam"),
        ("USER#ann", "U#SESSION#d", "Session"),
        ("USER#ann", "U#TOKEN#d", "Token"),
        ("USER#ann", "U#PERM#7", "ExperimentPermission"),
        ("COUNTERS", "CNT#users", "Counter"),
        ("EXP#7", "NEW#abc", "of no kind"),
    ]:
        assert kind_of(kinds, partition, sort) == kind
