"""Tests that `mlflow-serverless doctor` reports each fault of a stack and no other, and nothing for
a healthy stack.
"""

import json
import re
import subprocess
import time
from calendar import timegm
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.support.http_server import Answer, Received, serving
from tests.support.servers import binary

from .conftest import Account
from .emulator import REGION, Emulator
from .stack import Stack, delete, deploy_by_command

_NAME = "mlflow-dev"
#: As in template.yaml.
_LIFECYCLE = {
    "Rules": [
        {"ID": "remove-what-nobody-sees", "Status": "Enabled", "Filter": {"Prefix": ""}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        {"ID": "remove-long-answers", "Status": "Enabled", "Filter": {"Prefix": ".answers/"}, "Expiration": {"Days": 1}},
    ]
}


@pytest.mark.slow
def test_the_doctor_names_each_fault(account: Account, subtests: pytest.Subtests) -> None:
    done = deploy_by_command(account.emulator, account.directory, "--environment", "dev")
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    stack, aws = Stack(account.emulator, _NAME), Aws(account.emulator)
    # The emulator does not apply the lifecycle rules of the template to the bucket.
    aws.emulator.s3.put_bucket_lifecycle_configuration(Bucket=stack.outputs["BucketName"], LifecycleConfiguration=_LIFECYCLE)
    with serving(aws.answer) as url:
        with subtests.test("there are no findings for a healthy stack"):
            _is_well(aws, url)
        for fault, expected in _FAULTS.items():
            with subtests.test(fault.__name__), _present(fault, stack, aws):
                status, found = _findings(aws, url)
                assert status == 1
                assert len(found) == 1 and expected in found[0], "\n".join(found)
        with subtests.test("objects of the archive to which nothing refers are found on request"):
            _finds_orphaned_objects(stack, aws, url)
        with subtests.test("the settings of the stack's table can be shown and changed"):
            _sets_settings(stack)
        with subtests.test("there are no findings after all faults are fixed"):
            _is_well(aws, url)
    delete(stack, account.directory)


@dataclass
class Aws:
    """The emulator with a configurable clock and quota. The quota is that of an account in AWS, and
    not the emulator's own.
    """

    emulator: Emulator
    ahead: int = 0
    quota: int = 1000
    region: str = REGION

    def answer(self, received: Received) -> Answer:
        there = time.time() + self.ahead
        date = [("date", formatdate(there, usegmt=True))]
        signed = next(iter(received.values("x-amz-date")), None)
        if signed is None or abs(timegm(time.strptime(signed, "%Y%m%dT%H%M%SZ")) - there) > 300:
            return 403, date, b"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
        url = urlsplit(self.emulator.url)
        connection = HTTPConnection(url.hostname, url.port, timeout=60)
        connection.request(received.method, received.target, received.body, dict(received.headers))
        answered = connection.getresponse()
        kind, body = answered.headers.get("content-type", ""), answered.read()
        connection.close()
        if "account-settings" in received.target:
            said = json.loads(body)
            said["AccountLimit"]["ConcurrentExecutions"] = self.quota
            body = json.dumps(said).encode()
        return answered.status, [("content-type", kind), *date], body


@contextmanager
def _present(fault: Callable, stack: Stack, aws: Aws) -> Iterator[None]:
    """Adds a fault to the stack, and fixes it at the end in any case."""
    steps = fault(stack, aws)
    next(steps)
    try:
        yield
    finally:
        next(steps, None)


def _is_well(aws: Aws, url: str) -> None:
    status, found = _findings(aws, url)
    assert (status, found) == (0, ["No problems found."]), "\n".join(found)


def _finds_orphaned_objects(stack: Stack, aws: Aws, url: str) -> None:
    assert _findings(aws, url, "--archive") == (0, ["No problems found."])
    bucket, name = stack.outputs["BucketName"], "5" * 32
    aws.emulator.s3.put_object(Bucket=bucket, Key=f".archive/{name}", Body=b"x")
    assert _findings(aws, url) == (0, ["No problems found."])
    status, found = _findings(aws, url, "--archive")
    assert (status, found) == (1, [f"1 object of the archive is not referenced, for example {name}."])
    aws.emulator.s3.delete_object(Bucket=bucket, Key=f".archive/{name}")


def _sets_settings(stack: Stack) -> None:
    place = ["--dynamodb-endpoint", stack.emulator.url, "--table", stack.outputs["TableName"]]

    def config(*arguments: str) -> tuple[int, str]:
        command = [str(binary()), "config", *arguments, *place]
        done = subprocess.run(command, env=stack.emulator.operator, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    told = config("set", "deleted-retention", "30d")
    assert told[0] == 1 and "35 write units" in told[1] and "with --yes" in told[1], told
    for setting, value in [("deleted-retention", "30d"), ("trace-retention", "90d")]:
        made = config("set", setting, value, "--yes")
        assert made[0] == 0, made
        assert re.search(rf"^{setting} +server +{value}$", config("show")[1], re.MULTILINE)
        assert config("unset", setting, "--yes")[0] == 0
    assert re.search(r"^deleted-retention +server +off", config("show")[1], re.MULTILINE)


def _findings(aws: Aws, url: str, *options: str) -> tuple[int, list[str]]:
    """Returns the exit status and the findings. The lines with advice are indented, and omitted
    here.
    """
    command = [str(binary()), "doctor", "--stack", _NAME, *options]
    environment = aws.emulator.operator | {"AWS_ENDPOINT_URL": url, "AWS_REGION": aws.region}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    found = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert found, done.stderr
    return done.returncode, found


def _no_layer(stack: Stack, aws: Aws) -> Iterator[None]:
    functions, name = stack.emulator.functions, f"{stack.name}-ui"
    layers = [one["Arn"] for one in functions.get_function_configuration(FunctionName=name)["Layers"]]
    functions.update_function_configuration(FunctionName=name, Layers=[])
    yield
    functions.update_function_configuration(FunctionName=name, Layers=layers)


def _mapping(stack: Stack) -> dict:
    [mapping] = stack.emulator.functions.list_event_source_mappings(FunctionName=f"{stack.name}-fts-indexer")["EventSourceMappings"]
    return mapping


def _disabled_mapping(stack: Stack, aws: Aws) -> Iterator[None]:
    mapping = _mapping(stack)["UUID"]
    stack.emulator.functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    yield
    stack.emulator.functions.update_event_source_mapping(UUID=mapping, Enabled=True)


def _changed_filter(stack: Stack, aws: Aws) -> Iterator[None]:
    mapping = _mapping(stack)
    fewer = {"Filters": mapping["FilterCriteria"]["Filters"][1:]}
    stack.emulator.functions.update_event_source_mapping(UUID=mapping["UUID"], FilterCriteria=fewer)
    yield
    stack.emulator.functions.update_event_source_mapping(UUID=mapping["UUID"], FilterCriteria=mapping["FilterCriteria"])


def _overdue(stack: Stack, aws: Aws) -> Iterator[None]:
    """Disables the tick, and adds a run that has been due for an hour."""
    events = stack.emulator.client("events")
    rule = stack.resources("AWS::Events::Rule")["IndexerTick"]
    events.disable_rule(Name=rule)
    table, due = stack.outputs["TableName"], int(time.time() * 1000) - 3_600_000
    # In the format of shared/storage/key-schema: ascending numbers begin with a digit for the sign.
    key = {"PK": {"S": "LATER#0"}, "SK": {"S": f"DUE#{_ascending(due)}#run#0#{'a' * 32}"}}
    stack.emulator.dynamodb.put_item(TableName=table, Item=key)
    yield
    stack.emulator.dynamodb.delete_item(TableName=table, Key=key)
    events.enable_rule(Name=rule)


def _ascending(number: int) -> str:
    return f"{number + 2**63:016x}"


def _role_without_a_right(stack: Stack, aws: Aws) -> Iterator[None]:
    iam, function = stack.emulator.iam, f"{stack.name}-registry"
    role = stack.emulator.functions.get_function_configuration(FunctionName=function)["Role"].rpartition("/")[2]
    document = iam.get_role_policy(RoleName=role, PolicyName="registry")["PolicyDocument"]
    less = json.loads(json.dumps(document))
    for statement in less["Statement"]:
        if "dynamodb:UpdateItem" in statement["Action"]:
            statement["Action"].remove("dynamodb:UpdateItem")
    iam.put_role_policy(RoleName=role, PolicyName="registry", PolicyDocument=json.dumps(less))
    yield
    iam.put_role_policy(RoleName=role, PolicyName="registry", PolicyDocument=json.dumps(document))


def _no_cors(stack: Stack, aws: Aws) -> Iterator[None]:
    s3, bucket = stack.emulator.s3, stack.outputs["BucketName"]
    rules = s3.get_bucket_cors(Bucket=bucket)["CORSRules"]
    s3.delete_bucket_cors(Bucket=bucket)
    yield
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": rules})


def _no_lifecycle(stack: Stack, aws: Aws) -> Iterator[None]:
    s3, bucket = stack.emulator.s3, stack.outputs["BucketName"]
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    s3.delete_bucket_lifecycle(Bucket=bucket)
    yield
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})


def _wrong_region(stack: Stack, aws: Aws) -> Iterator[None]:
    aws.region = "us-east-1"
    yield
    aws.region = REGION


def _other_layout(stack: Stack, aws: Aws) -> Iterator[None]:
    table, key = stack.outputs["TableName"], {"PK": {"S": "CONFIG"}, "SK": {"S": "CFG#layout"}}
    before = stack.emulator.dynamodb.get_item(TableName=table, Key=key).get("Item")
    stack.emulator.dynamodb.put_item(TableName=table, Item=key | {"layout": {"N": "99"}})
    yield
    if before:
        stack.emulator.dynamodb.put_item(TableName=table, Item=before)
    else:
        stack.emulator.dynamodb.delete_item(TableName=table, Key=key)


def _unprotected(stack: Stack, aws: Aws) -> Iterator[None]:
    table = stack.outputs["AccessTableName"]
    stack.emulator.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
    yield
    stack.emulator.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)


def _clock_ten_minutes_slow(stack: Stack, aws: Aws) -> Iterator[None]:
    """Sets AWS's clock ten minutes ahead of this machine's, so that signatures are refused."""
    aws.ahead = 600
    yield
    aws.ahead = 0


def _small_quota(stack: Stack, aws: Aws) -> Iterator[None]:
    """Sets the quota of a new AWS account."""
    aws.quota = 10
    yield
    aws.quota = 1000


#: The faults, with the doctor's message about each.
_FAULTS: dict[Callable, str] = {
    _no_layer: f"The function {_NAME}-ui has no layer",
    _disabled_mapping: "The mapping from the table's stream to the indexer is Disabl",
    _overdue: "The indexer lags: the oldest change that is not indexed is 60 minutes old",
    _changed_filter: "The filter of the mapping",
    _role_without_a_right: f"The role of {_NAME}-registry lacks dynamodb:UpdateItem on",
    _no_cors: "has no CORS rule for",
    _no_lifecycle: "has no lifecycle rule that removes incomplete uploads",
    _wrong_region: f"There is no stack {_NAME} in us-east-1",
    _other_layout: "has layout 99",
    _clock_ten_minutes_slow: "The clock of this machine is 10 minutes slow",
    _small_quota: "quota of 10 concurrent executions is too small",
    _unprotected: "Deletion protection of the table",
}
