"""Restores tables, and configures what a restored table does not inherit."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

#: Logical ids in the template.
DATA, ACCESS = "Table", "AccessTable"
_WAIT = {"Delay": 20, "MaxAttempts": 4320}


@dataclass(frozen=True)
class Restored:
    """Names of the new tables, and the stream label of the data table."""

    data: str
    access: str
    stream: str


def moment_of(client: Any, tables: Iterable[str], said: str) -> datetime:
    """Returns the requested point in time, if both tables can be restored to it."""
    latest, earliest = [], []
    for table in tables:
        described = client.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        if described["PointInTimeRecoveryStatus"] != "ENABLED":
            raise ValueError(f"the table {table} has no point-in-time recovery")
        latest.append(described.get("LatestRestorableDateTime"))
        earliest.append(described.get("EarliestRestorableDateTime"))
    last = min((one for one in latest if one), default=datetime.now(timezone.utc))
    if said == "latest":
        return last.replace(microsecond=0)
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise ValueError(f"{said} is not a point in time: use 2030-01-31T12:00:00Z, or latest") from None
    if moment.tzinfo is None:
        raise ValueError(f"{said} has no time zone: use {said}Z for UTC")
    first = max((one for one in earliest if one), default=moment)
    if not first <= moment <= last:
        raise ValueError(f"both tables can only be restored to points in time from {first.isoformat()} to {last.isoformat()}")
    return moment


def restore(client: Any, stack: str, names: Mapping[str, str], moment: datetime) -> Restored:
    """Starts the restoration of both tables, and completes them once they are restored."""
    label = moment.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    made = {of: f"{stack}-restored-{of}-{label}" for of in names}
    for of, name in names.items():
        if not _exists(client, made[of]):
            client.restore_table_to_point_in_time(SourceTableName=name, TargetTableName=made[of], RestoreDateTime=moment)
    for of, name in made.items():
        _wait(client, name)
        _complete(client, name, stack, has_stream=of == DATA)
    stream = client.describe_table(TableName=made[DATA])["Table"]["LatestStreamLabel"]
    return Restored(made[DATA], made[ACCESS], stream)


def _complete(client: Any, table: str, stack: str, has_stream: bool) -> None:
    """Configures what a restored table does not inherit."""
    described = client.describe_table(TableName=table)["Table"]
    if has_stream and not described.get("StreamSpecification", {}).get("StreamEnabled"):
        client.update_table(TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
        _wait(client, table)
    ttl = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
    if ttl == "DISABLED":
        client.update_time_to_live(TableName=table, TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
    _keep_backups(client, table)
    client.tag_resource(ResourceArn=described["TableArn"], Tags=[{"Key": "mlflow-stack", "Value": stack}])
    if not described.get("DeletionProtectionEnabled"):
        client.update_table(TableName=table, DeletionProtectionEnabled=True)
        _wait(client, table)


def _keep_backups(client: Any, table: str) -> None:
    """Enables point-in-time recovery, which DynamoDB may refuse for some minutes after the creation
    of a table.
    """
    for left in reversed(range(60)):
        try:
            client.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
            return
        except client.exceptions.ContinuousBackupsUnavailableException:
            if not left:
                raise
            time.sleep(20)


def _exists(client: Any, table: str) -> bool:
    try:
        client.describe_table(TableName=table)
    except client.exceptions.ResourceNotFoundException:
        return False
    return True


def _wait(client: Any, table: str) -> None:
    client.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_WAIT)
