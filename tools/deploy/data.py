"""Checks existing tables and encryption keys that the parameters refer to."""

from collections.abc import Iterator, Mapping

import boto3
from botocore.exceptions import ClientError

from asked import unless_denied

_KEYS = ("TableKey", "BucketKey", "LogKey")


def find_problems(parameters: Mapping[str, str], region: str, template: Mapping) -> Iterator[str]:
    for name in _KEYS:
        if arn := parameters.get(name):
            yield from _of_key(name, arn, region)
    for name in ("Table", "AccessTable"):
        if table := parameters.get(f"Existing{name}"):
            stream = parameters.get("ExistingTableStream") if name == "Table" else None
            yield from _of_table(table, template["Resources"][name]["Properties"], stream)


def _of_key(name: str, arn: str, region: str) -> Iterator[str]:
    there = arn.split(":")[3]
    if there != region:
        yield f"{name} is in {there}, but has to be in {region}, like the stack."
        return
    with unless_denied(f"whether {name} can be used"):
        try:
            key = boto3.client("kms").describe_key(KeyId=arn)["KeyMetadata"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
            yield f"There is no key {arn} ({name})."
            return
        if key["KeyState"] != "Enabled":
            yield f"{name} is in the state {key['KeyState']}. It has to be enabled."
        elif key.get("KeySpec", "SYMMETRIC_DEFAULT") != "SYMMETRIC_DEFAULT" or key.get("KeyUsage") != "ENCRYPT_DECRYPT":
            yield f"{name} has to be a symmetric key for encryption and decryption, but is {key.get('KeySpec')} for {key.get('KeyUsage')}."


def _of_table(name: str, wanted: Mapping, stream: str | None) -> Iterator[str]:
    with unless_denied(f"whether the table {name} can be used"):
        try:
            table = boto3.client("dynamodb").describe_table(TableName=name)["Table"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            yield f"There is no table {name} in this region."
            return
        if table["TableStatus"] != "ACTIVE":
            yield f"The table {name} is in the state {table['TableStatus']}. Wait until it is ACTIVE."
        if _keys(table) != _keys(wanted):
            yield f"The table {name} cannot be used: its keys or indexes differ from those of this version."
        if stream is not None and table.get("LatestStreamLabel") != stream:
            has = table.get("LatestStreamLabel", "none")
            yield f"{stream} is not the stream of the table {name}. Its label is: {has}."
        said = table.get("StreamSpecification", {})
        if stream is not None and (not said.get("StreamEnabled") or said.get("StreamViewType") != "NEW_AND_OLD_IMAGES"):
            yield f"The table {name} has no stream with new and old images: nothing would be indexed. Enable such a stream."


def _keys(table: Mapping) -> dict[str, list]:
    """Returns the key of a table, and the keys of its indexes by name."""
    indexes = [*table.get("LocalSecondaryIndexes", []), *table.get("GlobalSecondaryIndexes", [])]
    return {one.get("IndexName", ""): [(key["AttributeName"], key["KeyType"]) for key in one["KeySchema"]] for one in [table, *indexes]}
