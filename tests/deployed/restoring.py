"""Tables that `make restore` restores.

The emulator keeps no history: what it restores is a copy of the table as it is at that time, whatever moment is said. What DynamoDB does here, and how long it
takes, is therefore not proven.
"""

import re
from dataclasses import dataclass

from .conftest import Account
from .stack import restore_by_command


@dataclass(frozen=True)
class Restored:
    """The new tables, and the label of the stream of the first."""

    data: str
    access: str
    stream: str


def restore(account: Account, stack: str, outputs: dict[str, str], *arguments: str) -> Restored:
    """Restores the tables of a stack, and looks whether they are complete and what was said of them."""
    before = {name: _count(account, outputs[name]) for name in ("TableName", "AccessTableName")}
    done = restore_by_command(account.emulator, account.directory, "--stack", stack, "--at", "latest", *arguments)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    said = done.stdout
    data, stream, access = re.search(r"ExistingTable=(\S+) ExistingTableStream=(\S+) ExistingAccessTable=([\w.-]+)", said).groups()
    client = account.emulator.dynamodb
    for name in (data, access):
        table = client.describe_table(TableName=name)["Table"]
        assert table["DeletionProtectionEnabled"] is True
        assert client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
        backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    assert client.describe_table(TableName=data)["Table"]["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    ended = re.search(r"(\d+) sessions and (\d+) tokens were ended", said)
    assert int(ended[2]) > 0, said
    # Each row is listed, of a kind that is known; sessions and tokens are gone.
    listed = {name: int(count) for count, name in re.findall(r"^ +([\d]+)  (.+)$", said.replace(",", ""), re.MULTILINE)}
    assert "of no kind" not in listed and "Session" not in listed and "Token" not in listed, listed
    assert {"Experiment", "Run", "User", "RegisteredModel", "Trace"} <= listed.keys(), listed
    assert sum(listed.values()) == sum(before.values()) - int(ended[1]) - int(ended[2])
    return Restored(data, access, stream)


def _count(account: Account, table: str) -> int:
    pages = account.emulator.dynamodb.get_paginator("scan").paginate(TableName=table, Select="COUNT")
    return sum(page["Count"] for page in pages)
