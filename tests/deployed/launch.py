"""Starts ministack with patches for features that it lacks. It runs in the emulator's own
environment, and does not import the tests.

- If a query of a local index requests attributes that the index does not have, they are read from
  the table. Ministack returns only the keys.
- CloudFormation converts parameters to booleans and numbers, refuses to delete protected tables,
  enables point-in-time recovery, and sets the class of a table. Ministack does none of this.
- CloudFormation distinguishes changes that replace a table, a bucket or an API. Ministack treats
  every change as a possible replacement.
- A filter of an event source mapping treats the parts of an absent object as absent. Ministack
  refuses every condition on them, including `exists: false`.
- CloudFormation limits roles by their permissions boundary. Ministack ignores that property.
- CloudFormation creates alarms of several metrics. Ministack refuses them, so it gets an alarm of
  the first metric.
- The creation of one resource of a stack can be made to fail. The file at the path in the variable
  FAILING specifies the resource.
"""

import os
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import yaml

# Must precede the import of ministack, which derives its own loader from this one. libyaml reads a
# template in a sixth of the time.
yaml.SafeLoader = yaml.CSafeLoader

from ministack.app import main  # noqa: E402
from ministack.services import dynamodb, iam, lambda_svc  # noqa: E402
from ministack.services.cloudformation import provisioners  # noqa: E402

_asked: ContextVar[dict[str, Any]] = ContextVar("asked", default={})
_query, _of_index = dynamodb._query, dynamodb._apply_index_projection


def _remembering(data: dict[str, Any], *others: Any) -> Any:
    _asked.set(data)
    return _query(data, *others)


def _of_local_index(item: dict[str, Any], table: dict[str, Any], index: str) -> dict[str, Any]:
    asked = _asked.get()
    is_local = any(one["IndexName"] == index for one in table.get("LocalSecondaryIndexes") or [])
    wants_more = "ProjectionExpression" in asked or asked.get("Select") == "ALL_ATTRIBUTES"
    return item if is_local and wants_more else _of_index(item, table, index)


_tables = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]
_create, _update, _delete = (_tables[name] for name in ("create", "update", "delete"))


def _typed(properties: dict[str, Any]) -> dict[str, Any]:
    indexes = {"GlobalSecondaryIndexes": [_bounded(index) for index in properties.get("GlobalSecondaryIndexes", [])]}
    protected = {"DeletionProtectionEnabled": str(properties.get("DeletionProtectionEnabled", "")).lower() == "true"}
    return _bounded(properties) | (indexes if indexes["GlobalSecondaryIndexes"] else {}) | protected


def _bounded(properties: dict[str, Any]) -> dict[str, Any]:
    """Converts the throughput limits of a table or an index to numbers, because clients refuse
    strings.
    """
    bounds = properties.get("OnDemandThroughput")
    return properties | {"OnDemandThroughput": {name: int(units) for name, units in bounds.items()}} if bounds else properties


def _create_table(name: str, properties: dict[str, Any], stack: str) -> Any:
    made = _create(name, _typed(properties), stack)
    asked = properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled")
    dynamodb._pitr_settings[made[0]] = str(asked).lower() == "true"
    if table_class := properties.get("TableClass"):
        dynamodb._tables[made[0]]["TableClassSummary"] = {"TableClass": table_class}
    return made


def _update_table(table: str, old: dict[str, Any], new: dict[str, Any], *others: Any) -> Any:
    return _update(table, _typed(old), _typed(new), *others)


def _delete_table(table: str, properties: dict[str, Any]) -> Any:
    if (dynamodb._tables.get(table) or {}).get("DeletionProtectionEnabled"):
        raise ValueError(f"table {table} is protected")
    return _delete(table, properties)


#: Properties with "Update requires: Replacement" in the reference of each type. For those in
#: `_MAYBE_REPLACING`, it depends on the change whether the resource is replaced.
_REPLACING = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema", "LocalSecondaryIndexes", "ImportSourceSpecification"),
    "AWS::S3::Bucket": ("BucketName", "BucketNamePrefix", "BucketNamespace"),
    "AWS::ApiGatewayV2::Api": ("ProtocolType",),
}
_MAYBE_REPLACING = {"AWS::DynamoDB::Table": ("AttributeDefinitions",)}


_alarms = provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::Alarm"]
_create_alarm, _update_alarm = _alarms["create"], _alarms["update"]


def _of_one_metric(properties: dict[str, Any]) -> dict[str, Any]:
    """Converts an alarm for ministack. Like AWS, requires that the expression refers to its
    metrics.
    """
    metrics = [one for one in properties.get("Metrics", []) if isinstance(one, dict)]
    if not metrics:
        return properties
    shown = [one for one in metrics if str(one["ReturnData"]).lower() == "true"]
    named = {one["Id"] for one in metrics if "MetricStat" in one}
    if len(shown) != 1 or not all(name in shown[0]["Expression"] for name in named):
        raise ValueError(f"an alarm must have one expression that refers to all its metrics: {metrics}")
    stat = next(one["MetricStat"] for one in metrics if "MetricStat" in one)
    alarm = {name: value for name, value in properties.items() if name != "Metrics"}
    return alarm | stat["Metric"] | {"Period": stat["Period"], "Statistic": stat["Stat"]}


def _create_metric_alarm(name: str, properties: dict[str, Any], stack: str) -> Any:
    return _create_alarm(name, _of_one_metric(properties), stack)


def _update_metric_alarm(alarm: str, old: dict[str, Any], new: dict[str, Any], *others: Any, **named: Any) -> Any:
    return _update_alarm(alarm, _of_one_metric(old), _of_one_metric(new), *others, **named)


_match = lambda_svc._match_esm_filter


def _with_absent_parts(record: dict[str, Any], pattern: dict[str, Any]) -> bool:
    return _match({name: {} for name, wanted in pattern.items() if isinstance(wanted, dict)} | record, pattern)


_roles = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
_create_role = _roles["create"]


def _create_bounded_role(name: str, properties: dict[str, Any], stack: str) -> Any:
    made = _create_role(name, properties, stack)
    iam._roles[made[0]]["PermissionsBoundary"] = properties.get("PermissionsBoundary")
    return made


def _unless_failing(create: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the creation of a resource so that it fails for the resource that is set to fail."""

    def create_or_fail(name: str, properties: dict[str, Any], stack: str) -> Any:
        if f"{stack} {name}" == Path(os.environ["FAILING"]).read_text():
            raise ValueError("this resource cannot be made")
        return create(name, properties, stack)

    return create_or_fail


if __name__ == "__main__":
    dynamodb._query, dynamodb._apply_index_projection = _remembering, _of_local_index
    lambda_svc._match_esm_filter = _with_absent_parts
    _roles |= {"create": _create_bounded_role}
    _alarms |= {"create": _create_metric_alarm, "update": _update_metric_alarm}
    _tables |= {"create": _create_table, "update": _update_table, "delete": _delete_table}
    provisioners._REPLACING_PROPERTIES.update(_REPLACING)
    provisioners._CONDITIONALLY_REPLACING_PROPERTIES.update(_MAYBE_REPLACING)
    for handlers in provisioners._RESOURCE_HANDLERS.values():
        if "create" in handlers:
            handlers["create"] = _unless_failing(handlers["create"])
    main()
