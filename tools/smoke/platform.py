"""Checks of Lambda, DynamoDB and IAM: cold starts, the stream's filter, recovery, and permissions
for single keys.
"""

import json
import secrets
import statistics
import time

from botocore.exceptions import ClientError

from .check import DIFFERS, EXPECTED, OPEN, Check, Facts, NotAsked, Outcome
from .world import API, FILES, World, asked

#: A cheap request to each function that users wait for.
_FIRST = {
    "tracking": f"{API}/experiments/get?experiment_id=0",
    "registry": f"{API}/registered-models/search?max_results=1",
    "artifacts": f"{FILES}?path={'0'}",
    "ui": "/",
}
_HOUR = 3600
#: Maximum time of a restoration. Others report that small tables take about this long, and
#: sometimes longer.
_TO_RESTORE = 12 * 60
_TO_DELETE = 2 * 60
RESTORED = "-smoke-restore-"


def _cold_starts(world: World) -> Facts:
    facts: Facts = {}
    for function, path in _FIRST.items():
        times = []
        for _ in range(3):
            began = time.monotonic()
            world.call("GET", path)
            times.append(round((time.monotonic() - began) * 1000))
        facts[function] = {"first ms": times[0], "later ms": min(times[1:])}
    try:
        initialized = [ms for function in _FIRST for ms in _init_durations(world, function)]
    except NotAsked as why:
        return facts | {"logs": str(why)}
    if initialized:
        facts["init ms"] = {"starts": len(initialized), "median": round(statistics.median(initialized)), "most": round(max(initialized))}
    return facts


def _init_durations(world: World, function: str) -> list[float]:
    """Returns the durations in the platform's reports of the last hour."""
    lines = world.log_lines(function, "initDurationMs", _HOUR)
    return [float(line["record"]["metrics"]["initDurationMs"]) for line in lines if "initDurationMs" in line.get("record", {}).get("metrics", {})]


def judge_cold_starts(facts: Facts) -> str:
    if "init ms" not in facts:
        return "no report"
    return "short" if facts["init ms"]["median"] <= 500 else "long"


def _removals(world: World) -> Facts:
    run = world.done("POST", f"{API}/runs/create", json={"experiment_id": world.experiment, "start_time": 1, "tags": [{"key": "smoke", "value": "x"}]})
    run_id = run["run"]["info"]["run_id"]
    world.done("POST", f"{API}/runs/update", json={"run_id": run_id, "status": "FINISHED", "end_time": 2})
    partition, table = f"EXP#{world.experiment}", world.table

    def is_indexed() -> bool:
        return not world.dynamodb.query(
            TableName=table,
            IndexName="LSI5",
            KeyConditionExpression="PK = :partition",
            ExpressionAttributeValues={":partition": {"S": partition}},
        )["Count"]

    def is_found() -> bool:
        sent = {"experiment_ids": [world.experiment], "filter": "tags.smoke = 'x'"}
        return any(one["info"]["run_id"] == run_id for one in world.done("POST", f"{API}/runs/search", json=sent).get("runs", []))

    with asked("reading and writing the table"):
        indexed = world.wait(is_indexed, 180)
        if indexed is None or not is_found():
            return {"indexed after s": indexed, "found": False}
        # Deletes the row directly, which only an operator can do. The index keeps a copy of the run
        # until the indexer receives the removal.
        world.dynamodb.delete_item(TableName=table, Key={"PK": {"S": partition}, "SK": {"S": f"R#{run_id}"}})
    return {"indexed after s": indexed, "found": True, "gone after s": world.wait(lambda: not is_found(), 180)}


def judge_removals(facts: Facts) -> str:
    if not facts["found"]:
        return "not indexed"
    return "not delivered" if facts["gone after s"] is None else "delivered"


def _recovery(world: World) -> Facts:
    facts: Facts = {}
    for name, table in (("table", world.table), ("table of access", world.access_table)):
        with asked("describing backups"):
            said = world.dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
        recovery = said.get("PointInTimeRecoveryDescription", {})
        earliest = recovery.get("EarliestRestorableDateTime")
        facts[name] = {"status": recovery.get("PointInTimeRecoveryStatus"), "from": earliest.isoformat() if earliest else None}
    return facts


def judge_recovery(facts: Facts) -> str:
    if any(table["status"] != "ENABLED" for table in facts.values()):
        return "disabled"
    return "enabled" if all(table["from"] for table in facts.values()) else "no time yet"


def _restoration(world: World) -> Facts:
    if not world.restores:
        raise NotAsked("it requires --restore (RESTORE=1)")
    source = world.access_table
    target = f"{world.stack}{RESTORED}{secrets.token_hex(4)}"
    with asked("restoring a table"):
        described = world.dynamodb.describe_table(TableName=source)["Table"]
        world.spending.restoration(described.get("TableSizeBytes", 0))
        world.cleanup.add("the restored table", lambda: remove_table(world, target))
        world.dynamodb.restore_table_to_point_in_time(SourceTableName=source, TargetTableName=target, UseLatestRestorableTime=True)
        took = world.wait(lambda: _state(world, target) == "ACTIVE", _TO_RESTORE)
        restored = world.dynamodb.describe_table(TableName=target)["Table"]
        facts: Facts = {"seconds": took, "same keys": all(restored.get(name) == described.get(name) for name in ("KeySchema", "AttributeDefinitions"))}
        if took is not None:
            remove_table(world, target)
            facts["gone after s"] = world.wait(lambda: _state(world, target) is None, _TO_DELETE)
    return facts


def judge_restoration(facts: Facts) -> str:
    if facts["seconds"] is None:
        return "takes longer"
    if facts["gone after s"] is None:
        return "not deleted"
    return "restored" if facts["same keys"] else "another table"


def _state(world: World, table: str) -> str | None:
    try:
        return world.dynamodb.describe_table(TableName=table)["Table"]["TableStatus"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise


def remove_table(world: World, table: str) -> None:
    """Deletes a table that a check has restored. Tables that are being created cannot be deleted
    yet.
    """
    began = time.monotonic()
    while _state(world, table) == "CREATING" and time.monotonic() - began < 120:
        time.sleep(2)
    if _state(world, table) not in (None, "DELETING"):
        world.dynamodb.delete_table(TableName=table)


def _leading_keys(world: World) -> Facts:
    table = world.table
    with asked("describing the table"):
        arn = world.dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
    mine, other = f"{world.label}#mine", f"{world.label}#other"
    statement = {
        "Effect": "Allow",
        "Action": "dynamodb:GetItem",
        "Resource": arn,
        "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [mine]}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    with asked("a token with a narrower policy, which requires the keys of an IAM user"):
        given = world.aws("sts").get_federation_token(Name=world.label[:32], Policy=policy, DurationSeconds=900)["Credentials"]
    narrow = world.aws(
        "dynamodb", aws_access_key_id=given["AccessKeyId"], aws_secret_access_key=given["SecretAccessKey"], aws_session_token=given["SessionToken"]
    )

    def is_allowed(call: str, key: str) -> bool:
        get = {"TableName": table, "Key": {"PK": {"S": key}, "SK": {"S": "nothing"}}}
        try:
            narrow.get_item(**get) if call == "GetItem" else narrow.transact_get_items(TransactItems=[{"Get": get}])
        except ClientError as error:
            if error.response["Error"]["Code"] == "AccessDeniedException":
                return False
            raise
        return True

    calls = {(call, whose): is_allowed(call, key) for call in ("GetItem", "TransactGetItems") for whose, key in (("own", mine), ("other", other))}
    return {f"{call} of {whose} key": allowed for (call, whose), allowed in calls.items()}


def judge_leading_keys(facts: Facts) -> str:
    own, other, own_together, other_together = (
        facts[f"{call} of {whose} key"] for call in ("GetItem", "TransactGetItems") for whose in ("own", "other")
    )
    if other or not own:
        return "not even for single calls"
    known = {(True, False): "both", (True, True): "not in transactions", (False, False): "no transactions"}
    return known.get((own_together, other_together), "something else")


CHECKS = [
    Check(
        "cold starts",
        "How long do first calls take, and how long does initialization take according to the platform's reports of the last hour?",
        {
            "short": Outcome(EXPECTED, "At most half a second."),
            "long": Outcome(DIFFERS, "More than half a second: report the numbers."),
            "no report": Outcome(OPEN, "The logs have no cold start or are not accessible, or SystemLogLevel is not INFO: the durations of first calls only show how long a caller waits. Run the check again after a deployment."),
        },
        _cold_starts,
        judge_cold_starts,
    ),
    Check(
        "removals in the stream",
        "Does the stream's filter let removals of rows through?",
        {
            "delivered": Outcome(EXPECTED, "Yes. The indexer removed its copy of a run whose row was removed by hand."),
            "not delivered": Outcome(DIFFERS, "No. Rows of removed datasets are left over, and searches find runs that were removed by hand. The filter needs another pattern for removals."),
            "not indexed": Outcome(DIFFERS, "A run was not indexed within three minutes: check the alarms of the indexer first."),
        },
        _removals,
        judge_removals,
    ),
    Check(
        "recovery",
        "Is point-in-time recovery enabled for both tables, and since when?",
        {
            "enabled": Outcome(EXPECTED, "Yes. Restore both tables to the same moment."),
            "no time yet": Outcome(OPEN, "It is enabled, but has no restorable time yet, which takes some minutes for a new table."),
            "disabled": Outcome(DIFFERS, "It is disabled for a table, whose data cannot be recovered."),
        },
        _recovery,
        judge_recovery,
    ),
    Check(
        "restoration",
        "Can the access table be restored to a new table, and how long does it take? The new table is deleted afterwards.",
        {
            "restored": Outcome(EXPECTED, "Yes, with the same keys, and it was gone after its deletion."),
            "not deleted": Outcome(DIFFERS, "It still exists two minutes after its deletion. Check whether it is protected from deletion, or delete it by hand."),
            "another table": Outcome(DIFFERS, "The new table has different keys, so a stack cannot use it."),
            "takes longer": Outcome(OPEN, "It was not ready within twelve minutes. It is deleted once it is ready, or the command to delete it is shown."),
        },
        _restoration,
        judge_restoration,
    ),
    Check(
        "leading keys",
        "Is a condition on dynamodb:LeadingKeys enforced in transactions? The check only reads keys that do not exist.",
        {
            "both": Outcome(EXPECTED, "Yes, as for single calls."),
            "not in transactions": Outcome(OPEN, "Transactions can access every key. No role of the stack relies on the condition, because authorization data is in a table of its own."),
            "no transactions": Outcome(OPEN, "All transactions are refused. No role of the stack has the condition."),
            "not even for single calls": Outcome(DIFFERS, "It is not enforced at all, as in an emulator, or the token was not limited."),
        },
        _leading_keys,
        judge_leading_keys,
    ),
]
