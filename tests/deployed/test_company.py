"""Tests the parameters for accounts with rules of their own, and what the stack provides for clients:
a stack is deployed with all of them, and its resources are read from the emulator.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from .conftest import Account
from .emulator import ACCOUNT, REGION
from .stack import Stack, delete, deploy

_PARAMETERS = {
    "Users": "on", "UsersRequestRate": "7", "UsersRequestBurst": "9", "RolePath": "/mlflow/", "LogRetention": "90", "RecoveryPeriodInDays": "7",
    "AccessLogs": "on", "Tracing": "on", "TableClass": "STANDARD_INFREQUENT_ACCESS", "WarmReadUnits": "12000", "WarmWriteUnits": "4000",
    "MoreAlarms": "on", "ArtifactAccess": "direct-past-users",
}


@pytest.fixture(scope="module")
def company(account: Account) -> Iterator[Stack]:
    emulator = account.emulator
    everything_allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    boundary = emulator.iam.create_policy(PolicyName="boundary", PolicyDocument=json.dumps(everything_allowed))["Policy"]["Arn"]
    stack = deploy(emulator, account.directory, "company", PermissionsBoundary=boundary, **_PARAMETERS)
    outputs = stack.outputs
    yield stack
    delete(stack, account.directory)
    # The stack retains its data. Other tests count the tables and buckets of the account.
    for name in ("TableName", "AccessTableName"):
        emulator.dynamodb.delete_table(TableName=outputs[name])
    emulator.s3.delete_bucket(Bucket=outputs["BucketName"])


def _stages(stack: Stack) -> dict[str, Any]:
    gateway = stack.emulator.client("apigatewayv2")
    apis = stack.resources("AWS::ApiGatewayV2::Api")
    return {name: gateway.get_stages(ApiId=identifier)["Items"][0] for name, identifier in apis.items()}


def test_roles_have_their_path_and_boundary(company: Stack) -> None:
    roles = company.resources("AWS::IAM::Role")
    assert len(roles) == len(company.resources("AWS::Lambda::Function"))
    for name in roles.values():
        role = company.emulator.iam.get_role(RoleName=name)["Role"]
        assert role["Path"] == "/mlflow/"
        assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    for statements in company.roles().values():
        [tracing] = [one for one in statements if "xray:PutTraceSegments" in one["Action"]]
        assert tracing["Effect"] == "Allow"
    function = company.emulator.functions.get_function_configuration(FunctionName="company-tracking")
    assert function["Role"] == f"arn:aws:iam::{ACCOUNT}:role/mlflow/{roles['TrackingFunctionRole']}"
    assert function["TracingConfig"]["Mode"] == "Active"


def test_stages_bear_the_tag_their_rates_and_their_logs(company: Stack) -> None:
    stages = _stages(company)
    assert stages.keys() == {"Api", "UsersApi"}
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/vendedlogs/apis/company/requests"
    for stage in stages.values():
        assert stage["Tags"]["mlflow-stack"] == "company"
        assert stage["AccessLogSettings"]["DestinationArn"] == group
        assert json.loads(stage["AccessLogSettings"]["Format"])["status"] == "$context.status"
    limits = company.apis()
    assert (limits["UsersApi"].rate, limits["UsersApi"].burst, limits["Api"].rate) == (7, 9, 1500)


def test_logs_are_kept_for_as_long_as_asked(company: Stack) -> None:
    logs = company.emulator.client("logs")
    groups = [
        group for prefix in ("/aws/lambda/company/", "/aws/vendedlogs/apis/company/") for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    ]
    assert len(groups) == len(company.resources("AWS::Lambda::Function")) + 1
    assert {group["retentionInDays"] for group in groups} == {90}


def test_the_data_table_has_its_class_and_the_access_table_has_not(company: Stack) -> None:
    classes = {
        name: company.emulator.dynamodb.describe_table(TableName=company.outputs[name])["Table"].get("TableClassSummary", {}).get("TableClass", "STANDARD")
        for name in ("TableName", "AccessTableName")
    }
    assert classes == {"TableName": "STANDARD_INFREQUENT_ACCESS", "AccessTableName": "STANDARD"}


def test_the_dashboard_has_a_name_of_its_region_and_alarms_are_there(company: Stack) -> None:
    watch = company.emulator.client("cloudwatch")
    assert f"company-{REGION}" in {one["DashboardName"] for one in watch.list_dashboards()["DashboardEntries"]}
    assert company.outputs["DashboardUrl"].endswith(f"#dashboards/dashboard/company-{REGION}")
    alarms = company.resources("AWS::CloudWatch::Alarm")
    assert {"ChangesLeftBehind", "PartitionNearlyFull", "IndexerBehind", "ClientErrors"} <= alarms.keys()


def test_outputs_say_what_clients_and_other_stacks_need(company: Stack) -> None:
    outputs = company.outputs
    api = company.resources("AWS::ApiGatewayV2::Api")["Api"]
    assert outputs["ApiResource"] == f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/*"
    assert outputs["Region"] == REGION
    described = company.emulator.dynamodb.describe_table(TableName=outputs["TableName"])["Table"]
    # The emulator derives the label from the time of the request, so it differs by some milliseconds.
    labels = [datetime.fromisoformat(label) for label in (outputs["TableStreamLabel"], described["LatestStreamLabel"])]
    assert abs(labels[0] - labels[1]) < timedelta(seconds=1)


def test_the_policy_for_clients_admits_them_to_the_api_and_the_bucket_and_to_nothing_else(company: Stack) -> None:
    iam, outputs = company.emulator.iam, company.outputs
    assert outputs["ClientPolicyArn"].startswith(f"arn:aws:iam::{ACCOUNT}:policy/mlflow/")
    iam.create_user(UserName="attached")
    iam.attach_user_policy(UserName="attached", PolicyArn=outputs["ClientPolicyArn"])
    api, bucket = outputs["ApiResource"].removesuffix("*"), f"arn:aws:s3:::{outputs['BucketName']}"
    table = company.emulator.dynamodb.describe_table(TableName=outputs["TableName"])["Table"]["TableArn"]

    def allowed(action: str, resource: str) -> bool:
        said = iam.simulate_principal_policy(PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:user/attached", ActionNames=[action], ResourceArns=[resource])
        return said["EvaluationResults"][0]["EvalDecision"] == "allowed"

    assert allowed("execute-api:Invoke", f"{api}$default/POST/api/2.0/mlflow/runs/create")
    assert not allowed("execute-api:Invoke", api.replace(company.resources("AWS::ApiGatewayV2::Api")["Api"], "another"))
    assert allowed("s3:ListBucket", bucket) and allowed("s3:PutObject", f"{bucket}/0/run/artifacts/notes.txt")
    assert not allowed("s3:DeleteBucket", bucket)
    assert not allowed("dynamodb:GetItem", table)
    iam.detach_user_policy(UserName="attached", PolicyArn=outputs["ClientPolicyArn"])
    iam.delete_user(UserName="attached")
