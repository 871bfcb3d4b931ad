"""Tests the checks of parameters in `make deploy` before anything is built: by the template's
patterns and rules, and by the resources in AWS that they refer to.
"""

import copy
import sys
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import data  # noqa: E402
import names  # noqa: E402
import preflight  # noqa: E402
from template import refused  # noqa: E402

_REGION = "eu-central-1"
_CERTIFICATE = f"arn:aws:acm:{_REGION}:123456789012:certificate/0a1b"
_KEY = f"arn:aws:kms:{_REGION}:123456789012:key/0a1b"
_NAME = {"DomainName": "ml.example.com", "DomainCertificate": _CERTIFICATE}


@pytest.fixture(scope="module")
def template() -> dict:
    return yaml_parse((REPOSITORY / "template.yaml").read_text())


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {"AWS_DEFAULT_REGION": _REGION, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


@pytest.mark.parametrize(
    "said",
    [
        {},
        _NAME,
        _NAME | {"DomainZone": "Z0123"},
        {"Users": "on", "UsersDomainName": "people.example.com", "DomainCertificate": _CERTIFICATE},
        {"TableKey": _KEY, "BucketKey": _KEY, "LogKey": _KEY},
        {"MaxReadUnits": "1000", "MaxWriteUnits": "500"},
        {"MaxReadUnits": "1000", "MaxWriteUnits": "500", "ExistingAccessTable": "users"},
        {"SystemLogLevel": "WARN", "ApplicationLogLevel": "WARN"},
        {"PermissionsBoundary": "arn:aws:iam::123456789012:policy/limits/developers", "RolePath": "/mlflow/prod/"},
        {"LogRetention": "400", "RecoveryPeriodInDays": "1", "AccessLogs": "on", "Tracing": "on", "Dashboard": "off"},
        {"TableClass": "STANDARD_INFREQUENT_ACCESS", "WarmReadUnits": "12000", "WarmWriteUnits": "4000"},
        {"UsersRequestRate": "1", "UsersRequestBurst": "1"},
        _NAME | {"DisableExecuteApiEndpoint": "true"},
        _NAME | {"Users": "on", "UsersDomainName": "people.example.com", "DisableExecuteApiEndpoint": "true"},
        {"Authorization": "NONE", "AccessMode": "basic"},
    ],
)
def test_what_fits_is_taken(template: dict, said: dict[str, str]):
    assert list(refused(template, said, {})) == []


@pytest.mark.parametrize(
    "said, why",
    [
        ({"DomainName": "ml.example.com"}, "DomainCertificate"),
        (_NAME | {"Users": "on", "UsersDomainName": "ml.example.com"}, "two names"),
        (_NAME | {"UsersDomainName": "people.example.com"}, "Users=on"),
        ({"DomainCertificate": _CERTIFICATE}, "requires DomainName"),
        ({"DomainZone": "Z0123"}, "requires DomainName"),
        (_NAME | {"DomainName": "ml.example.com/mlflow"}, "without a path"),
        (_NAME | {"DomainName": "https://ml.example.com"}, "without https://"),
        ({"TableKey": f"arn:aws:kms:{_REGION}:123456789012:alias/mine"}, "not of an alias"),
        ({"MaxReadUnits": "1000"}, "requires MaxWriteUnits"),
        ({"MaxWriteUnits": "1000"}, "requires MaxReadUnits"),
        (
            {"MaxReadUnits": "1", "MaxWriteUnits": "1", "ExistingTable": "data", "ExistingTableStream": "2030-01-31T12:00:00.000",
             "ExistingAccessTable": "users"},
            "It does not change existing tables",
        ),
        ({"DisableExecuteApiEndpoint": "true"}, "requires DomainName"),
        (_NAME | {"Users": "on", "DisableExecuteApiEndpoint": "true"}, "requires UsersDomainName"),
        ({"WarmReadUnits": "12000"}, "requires WarmWriteUnits"),
        ({"WarmWriteUnits": "4000"}, "requires WarmReadUnits"),
        ({"WarmReadUnits": "11999", "WarmWriteUnits": "4000"}, "at least 12000"),
        ({"WarmReadUnits": "12000", "WarmWriteUnits": "3999"}, "at least 4000"),
        (
            {"WarmReadUnits": "12000", "WarmWriteUnits": "4000", "ExistingTable": "data", "ExistingTableStream": "2030-01-31T12:00:00.000"},
            "do not change an existing table",
        ),
        ({"TableClass": "INFREQUENT"}, "STANDARD_INFREQUENT_ACCESS"),
        ({"PermissionsBoundary": "developers"}, "ARN of a managed policy"),
        ({"RolePath": "mlflow"}, "begin and end with a slash"),
        ({"LogRetention": "31"}, "30, 60"),
        ({"RecoveryPeriodInDays": "36"}, "from 1 to 35"),
        ({"UsersRequestRate": "0"}, "at least 1"),
        ({"AccessLogs": "yes"}, "off, on"),
        ({"ApplicationLogLevel": "ERROR"}, "INFO, WARN"),
        ({"MaxReadUnits": "a lot", "MaxWriteUnits": "1"}, "must be a number"),
        ({"IndexingDelay": "301"}, "from 0 to 300"),
        ({"Usres": "on"}, "no parameter Usres"),
        ({"Users": "on", "Authorization": "NONE"}, "Authorization=AWS_IAM"),
        ({"Users": "on", "ArtifactAccess": "direct"}, "direct-past-users"),
        ({"AccessMode": "basic"}, "Users=on"),
        ({"ExistingTable": "data"}, "ExistingTableStream"),
    ],
)
def test_what_contradicts_itself_is_refused(template: dict, said: dict[str, str], why: str):
    [found] = refused(template, said, {})
    assert why in found


def test_what_the_stack_keeps_counts(template: dict):
    kept = {"Users": "on"}
    assert list(refused(template, {"UsersDomainName": "people.example.com", "DomainCertificate": _CERTIFICATE}, kept)) == []
    [why] = refused(template, {"Users": "off"}, {"Users": "on", "UsersDomainName": "people.example.com", "DomainCertificate": _CERTIFICATE})
    assert "UsersDomainName" in why


def test_each_rule_is_tried(template: dict):
    """Checks that the tests above violate each rule, because a rule that is never violated might
    always hold.
    """
    [tried] = [mark.args[1] for mark in test_what_contradicts_itself_is_refused.pytestmark if mark.name == "parametrize"]
    broken = {text for said, _ in tried for text in refused(template, said, {})}
    asserted = {one["AssertDescription"] for rule in template["Rules"].values() for one in rule["Assertions"]}
    same = "Permissions for the bucket bypass the grants of users. To confirm this, set ArtifactAccess=direct-past-users."
    left = {text for text in asserted - broken if text != same}
    assert left == {"Users=on requires AccessMode=none, because the functions authenticate requests depending on their API."}


class _Gateway:
    """An API Gateway client with custom domains, and the mapping keys of each."""

    def __init__(self, keys: dict[str, list[str]]):
        self._keys = keys

    def get_api_mappings(self, DomainName: str) -> dict:
        if DomainName not in self._keys:
            raise names.ClientError({"Error": {"Code": "NotFoundException", "Message": "no"}}, "GetApiMappings")
        return {"Items": [{"ApiMappingKey": key} for key in self._keys[DomainName]]}


@pytest.fixture
def gateway(aws, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Returns the custom domains in API Gateway, which a test may change."""
    keys: dict[str, list[str]] = {}
    client = boto3.client
    monkeypatch.setattr(names.boto3, "client", lambda service: _Gateway(keys) if service == "apigatewayv2" else client(service))
    return keys


def _named(**parameters: str) -> list[str]:
    return list(names.find_problems(parameters, _REGION, {}))


def test_a_certificate_of_another_region_is_told(gateway):
    [why] = _named(DomainName="ml.example.com", DomainCertificate=_CERTIFICATE.replace(_REGION, "us-east-1"))
    assert "us-east-1" in why and _REGION in why


def test_a_certificate_that_is_not_there_not_issued_or_of_another_name_is_told(gateway, monkeypatch: pytest.MonkeyPatch):
    [why] = _named(**_NAME)
    assert "There is no certificate" in why
    acm = boto3.client("acm")
    arn = acm.request_certificate(DomainName="*.example.com", SubjectAlternativeNames=["example.com"])["CertificateArn"]
    [why] = _named(DomainName="ml.example.com", DomainCertificate=arn)
    assert "PENDING_VALIDATION" in why
    monkeypatch.setattr("moto.settings.ACM_VALIDATION_WAIT", -1)
    for name, fits in [("ml.example.com", True), ("example.com", True), ("a.ml.example.com", False), ("ml.example.org", False)]:
        found = _named(DomainName=name, DomainCertificate=arn)
        assert (found == []) is fits, found
        assert fits or f"does not cover {name}" in found[0]


def test_a_zone_that_the_name_is_not_in_is_told(gateway):
    zones = boto3.client("route53")
    zone = zones.create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"].rpartition("/")[2]
    assert _named(DomainName="ml.example.com", DomainZone=zone) == []
    [why] = _named(DomainName="ml.example.org", DomainZone=zone)
    assert "not in the hosted zone" in why
    [why] = _named(DomainName="ml.example.com", DomainZone="Z0")
    assert "no hosted zone Z0" in why


def test_a_name_of_somebody_else_and_one_that_is_shared_by_paths_are_refused(gateway: dict[str, list[str]]):
    own = {"Domain": "ml.example.com"}

    def told(of_stack: dict[str, str]) -> list[str]:
        return list(names.find_problems({"DomainName": "ml.example.com"}, _REGION, of_stack))

    assert told({}) == []
    gateway["ml.example.com"] = [""]
    assert told(own) == []
    assert "outside of this stack" in told({})[0]
    gateway["ml.example.com"] = ["", "mlflow"]
    assert "shared by paths (mlflow)" in told(own)[0]


def test_a_key_that_cannot_encrypt_is_told(aws, template: dict):
    def told(arn: str) -> list[str]:
        return list(data.find_problems({"BucketKey": arn}, _REGION, template))

    kms = boto3.client("kms")
    key = kms.create_key(KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]
    assert told(key["Arn"]) == []
    kms.disable_key(KeyId=key["KeyId"])
    assert "Disabled" in told(key["Arn"])[0]
    assert "symmetric" in told(kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"])[0]
    assert "There is no key" in told(_KEY)[0]
    assert "has to be in" in told(_KEY.replace(_REGION, "us-east-1"))[0]


def test_a_table_that_does_not_fit_is_told(aws, template: dict):
    wanted = template["Resources"]["Table"]["Properties"]
    made = {name: copy.deepcopy(wanted[name]) for name in ("AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes")}
    for index in made["GlobalSecondaryIndexes"]:
        index.pop("OnDemandThroughput")
    tables = boto3.client("dynamodb")
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    label = tables.create_table(TableName="whole", BillingMode="PAY_PER_REQUEST", StreamSpecification=stream, **made)["TableDescription"]["LatestStreamLabel"]
    made["GlobalSecondaryIndexes"] = made["GlobalSecondaryIndexes"][:4]
    made["AttributeDefinitions"] = [one for one in made["AttributeDefinitions"] if not one["AttributeName"].startswith("gsi5")]
    tables.create_table(TableName="less", BillingMode="PAY_PER_REQUEST", StreamSpecification=stream, **made)

    def told(table: str, stream: str) -> list[str]:
        return list(data.find_problems({"ExistingTable": table, "ExistingTableStream": stream}, _REGION, template))

    assert told("whole", label) == []
    assert f"Its label is: {label}" in told("whole", "2030-01-31T12:00:00.000")[0]
    assert "its keys or indexes differ" in told("less", boto3.client("dynamodb").describe_table(TableName="less")["Table"]["LatestStreamLabel"])[0]
    assert "There is no table none" in told("none", label)[0]


class _Lambda:
    """A Lambda client of an account with a concurrency quota, part of which is reserved."""

    def __init__(self, limit: int, unreserved: int):
        self._limit = {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": unreserved}

    def get_account_settings(self) -> dict:
        return {"AccountLimit": self._limit}


@pytest.mark.parametrize(
    "limit, unreserved, said, kept, fits",
    [
        (10, 10, {"IndexerConcurrency": "10"}, {}, False),
        (1000, 1000, {"TrackingConcurrency": "890", "IndexerConcurrency": "10"}, {}, True),
        (1000, 1000, {"TrackingConcurrency": "891", "IndexerConcurrency": "10"}, {}, False),
        # Most of the quota is reserved by another stack.
        (1000, 150, {"IndexerConcurrency": "60"}, {}, False),
        # Most of the quota is reserved by this stack.
        (1000, 100, {"IndexerConcurrency": "10"}, {"TrackingConcurrency": "900"}, False),
        (1000, 110, {"IndexerConcurrency": "10"}, {"TrackingConcurrency": "890"}, True),
        (10, 10, {}, {}, True),
        (10, 10, {"TrackingConcurrency": "0"}, {"TrackingConcurrency": "5"}, True),
    ],
)
def test_sandboxes_are_reserved_only_where_enough_are_left(monkeypatch, limit: int, unreserved: int, said: dict, kept: dict, fits: bool):
    monkeypatch.setattr(preflight.boto3, "client", lambda _: _Lambda(limit, unreserved))
    found = list(preflight._of_sandboxes(said, kept))
    assert (found == []) is fits, found


def test_whoever_may_not_ask_is_told_and_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    class Refusing:
        def describe_key(self, **_: str) -> None:
            raise names.ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeKey")

    monkeypatch.setattr(data.boto3, "client", lambda _: Refusing())
    assert list(data.find_problems({"TableKey": _KEY}, _REGION, {})) == []
    assert "cannot check whether TableKey can be used" in capsys.readouterr().out
