"""Restores tables with `make restore`.

The emulator has no history: it restores a copy of the current table, regardless of the requested
time. Therefore DynamoDB's behavior and the duration are not tested.
"""

import re
from dataclasses import dataclass

from .conftest import Account
from .stack import restore_by_command


@dataclass(frozen=True)
class Restored:
    """The new tables, and the label of the first one's stream."""

    data: str
    access: str
    stream: str


def restore(account: Account, stack: str, outputs: dict[str, str], *arguments: str) -> Restored:
    """Restores the tables of a stack, and checks that they and the report about them
    are complete.
    """
    originals = [outputs[name] for name in ("TableName", "AccessTableName")]
    before = [_keys(account, name) for name in originals]
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
    ended = re.search(r"Ended (\d+) sessions and (\d+) tokens", said)
    assert int(ended[2]) > 0, said
    # Every row is listed with a known kind. Sessions with their renewals, and tokens, are removed.
    listed = {name: int(count) for count, name in re.findall(r"^ +([\d]+)  (.+)$", said.replace(",", ""), re.MULTILINE)}
    assert not {"of no kind", "Session", "Renewal", "Token"} & listed.keys(), listed
    assert {"Experiment", "Run", "User", "RegisteredModel", "Trace"} <= listed.keys(), listed
    restored = [_keys(account, name) for name in (data, access)]
    assert sum(listed.values()) == sum(len(keys) for keys in restored), "the report must list all restored rows"
    # The indexer continues meanwhile, so only rows that existed before and after the restore are
    # compared.
    stayed = [keys & _keys(account, name) for keys, name in zip(before, originals, strict=True)]
    missing = [key for kept, keys in zip(stayed, restored, strict=True) for key in kept - keys]
    ended_secrets = [key for key in missing if not key[1].startswith("U#RENEWAL#")]
    assert len(ended_secrets) == int(ended[1]) + int(ended[2]), missing
    return Restored(data, access, stream)


def _keys(account: Account, table: str) -> set[tuple[str, str]]:
    pages = account.emulator.dynamodb.get_paginator("scan").paginate(TableName=table, ProjectionExpression="PK, SK")
    return {(item["PK"]["S"], item["SK"]["S"]) for page in pages for item in page["Items"]}
