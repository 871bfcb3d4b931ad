"""Tests that the policies of a deployer cover each resource of the template, according to the resource
types' own lists of permissions. `test_archive.py` deploys with them.
"""

import json
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse

from .emulator import REPOSITORY
from .policies import DIRECTORY, NAMES, allows, read_policy

#: CloudFormation's schemas of resource types, which cfn-lint contains.
_SCHEMAS = Path(find_spec("cfnlint").origin).parent / "data/schemas"
_TRANSFORMED = {"AWS::Serverless::Function": "AWS::Lambda::Function", "AWS::Serverless::LayerVersion": "AWS::Lambda::LayerVersion"}
#: Permissions for properties that the template does not use.
_NOT_USED = {
    "ec2:*": "functions are not in a VPC",
    "elasticfilesystem:*": "functions mount no file system",
    "s3files:*": "functions mount no file system",
    "lambda:GetCodeSigningConfig": "code is not signed",
    "lambda:AssociateRuntimeAlias": "the runtime has no alias",
    "lambda:PassCapacityProvider": "functions have no capacity provider",
    "kms:*": "keys of the operator's own, whose policies have to allow the deployer (docs/guide/deploy.md)",
    "kinesis:*": "tables have no Kinesis stream",
    "s3tables:*": "the bucket has no metadata tables",
    "firehose:*": "log groups are not delivered to Firehose",
    "iam:CreateServiceLinkedRole": "tables have no replicas and no automatic scaling",
    "iam:Attach*Policy": "the policy for clients is not attached",
    "iam:Detach*Policy": "the policy for clients is not attached",
    "s3:REST.PUT.OBJECT": "log groups are not delivered to S3",
    "dynamodb:*KinesisStreamingDestination": "tables have no Kinesis stream",
    "dynamodb:*TableReplica": "tables have no replicas",
    "dynamodb:ImportTable": "tables are not imported",
    "dynamodb:*ResourcePolicy": "tables have no resource policy",
    "dynamodb:*Item": "tables have no replicas",
    "dynamodb:Query": "tables have no replicas",
    "dynamodb:Scan": "tables have no replicas",
    "logs:*LogStream*": "tables are not imported",
    "logs:PutLogEvents": "tables are not imported",
    "s3:GetObjectMetadata": "tables are not imported",
    "logs:PutBearerTokenAuthentication": "log groups have no tokens",
}


def _types() -> list[str]:
    resources = yaml_parse((REPOSITORY / "template.yaml").read_text())["Resources"].values()
    return sorted({_TRANSFORMED.get(resource["Type"], resource["Type"]) for resource in resources})


@pytest.mark.parametrize("kind", _types())
def test_each_resource_can_be_created_changed_and_deleted(kind: str):
    schemas = json.loads((_SCHEMAS / "providers/us-east-1.json").read_text())
    handlers = json.loads((_SCHEMAS / f"resources/{schemas[kind]}.json").read_text())["handlers"]
    wanted = {action for handler in ("create", "read", "update", "delete") for action in handlers.get(handler, {}).get("permissions", [])}
    assert wanted
    policies = [read_policy(name, "mlflow") for name in NAMES]
    missing = {action for action in wanted if not allows(policies, action) and not any(fnmatchcase(action, pattern) for pattern in _NOT_USED)}
    assert not missing, sorted(missing)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_can_be_attached_and_is_bound_to_the_stack(name: str):
    policy = json.loads((DIRECTORY / f"{name}.json").read_text())
    # Limit of a managed policy, without white space.
    assert len(json.dumps(policy, separators=(",", ":"))) <= 6144
    for statement in policy["Statement"]:
        # Actions on all resources are reads, or have no resources of their own.
        if statement["Resource"] == ["*"]:
            writes = [action for action in statement["Action"] if not action.partition(":")[2].startswith(("Describe", "Get", "GET", "List"))]
            assert set(writes) <= {
                "lambda:CreateEventSourceMapping", "logs:CreateLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery",
                "logs:PutResourcePolicy", "logs:DeleteResourcePolicy", "route53:ChangeResourceRecordSets",
            }, writes
    assert not allows([policy], "dynamodb:Scan") and not allows([policy], "iam:CreateUser")


def test_the_guide_names_each_policy():
    text = (REPOSITORY / "docs/guide/deploy.md").read_text()
    for name in NAMES:
        assert f"](../../tools/deploy/policies/{name}.json)" in text
