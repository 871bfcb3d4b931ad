"""Tests that stacks with the same name in two regions do not contend for a name that is unique in an
account, or in all accounts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from tools.regions import TEMPLATE

#: Properties with names that are not unique in a region only, by resource type.
_GLOBAL = {
    "AWS::Budgets::Budget": ("BudgetName",),
    "AWS::CloudFront::CachePolicy": ("Name",),
    "AWS::CloudWatch::Dashboard": ("DashboardName",),
    "AWS::IAM::Group": ("GroupName",),
    "AWS::IAM::InstanceProfile": ("InstanceProfileName",),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::IAM::User": ("UserName",),
    "AWS::S3::Bucket": ("BucketName", "BucketNamePrefix"),
}


def _names(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield name, one
            yield from _names(one)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)


def _contended(resources: Mapping[str, Any]) -> list[str]:
    """Returns the resources whose name would be the same in another region."""
    found = []
    for resource, said in resources.items():
        wanted = _GLOBAL.get(said["Type"], ())
        for name, value in _names(said.get("Properties", {})):
            # A bucket's name is unique in all accounts.
            parts = ["AWS::Region", "AWS::AccountId"] if said["Type"] == "AWS::S3::Bucket" else ["AWS::Region"]
            if name in wanted and not all(part in str(value) for part in parts):
                found.append(f"{resource}.{name}")
    return found


def test_no_global_name_is_that_of_the_stack_alone() -> None:
    resources = yaml_parse(TEMPLATE.read_text("utf-8"))["Resources"]
    assert _contended(resources) == []
    assert resources["Overview"]["Properties"]["DashboardName"] == {"Fn::Sub": "${AWS::StackName}-${AWS::Region}"}


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("AWS::CloudWatch::Dashboard", {"DashboardName": {"Ref": "AWS::StackName"}}),
        ("AWS::Budgets::Budget", {"Budget": {"BudgetName": {"Ref": "AWS::StackName"}}}),
        ("AWS::IAM::Role", {"RoleName": {"Fn::Sub": "${AWS::StackName}-tracking"}}),
        ("AWS::S3::Bucket", {"BucketName": {"Fn::Sub": "${AWS::StackName}-${AWS::Region}"}}),
    ],
)
def test_a_name_that_two_regions_would_share_is_found(kind: str, properties: dict[str, Any]) -> None:
    assert len(_contended({"Named": {"Type": kind, "Properties": properties}})) == 1
