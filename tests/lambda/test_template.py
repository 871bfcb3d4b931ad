"""Tests of template.yaml after SAM has expanded it. `make validate` checks that it is valid."""

import copy
import json
import re
import tomllib
from pathlib import Path

import pytest
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from .conftest import REPOSITORY


class NoManagedPolicies:
    def load(self) -> dict[str, str]:
        return {}


@pytest.fixture(scope="module")
def template() -> dict:
    return yaml_parse((REPOSITORY / "template.yaml").read_text())


@pytest.fixture
def resources(template, monkeypatch) -> dict:
    """Returns the resources that CloudFormation receives."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    built = copy.deepcopy(template)
    for function in of_type(built["Resources"], "AWS::Serverless::Function").values():
        function["Properties"]["CodeUri"] = {"Bucket": "any", "Key": "any"}
    for layer in of_type(built["Resources"], "AWS::Serverless::LayerVersion").values():
        layer["Properties"]["ContentUri"] = {"Bucket": "any", "Key": "any"}
    return transform(built, {}, NoManagedPolicies())["Resources"]


def of_type(resources: dict, kind: str) -> dict:
    return {name: resource for name, resource in resources.items() if resource["Type"] == kind}


def manifest(directory: Path) -> dict:
    return tomllib.loads((directory / "Cargo.toml").read_text())


def test_each_crate_in_functions_is_deployed(template):
    functions = of_type(template["Resources"], "AWS::Serverless::Function").values()
    deployed = {function["Properties"]["CodeUri"] for function in functions}
    assert deployed == {f"functions/{crate.parent.name}" for crate in REPOSITORY.glob("functions/*/Cargo.toml")}
    assert {function["Metadata"]["BuildMethod"] for function in functions} == {"rust-cargolambda"}


def paths(template: dict) -> dict[str, dict]:
    """Returns the paths in the API's OpenAPI body."""
    return template["Resources"]["Api"]["Properties"]["Body"]["paths"]


def function_of(path: dict) -> str:
    """Returns the resource of the function that a path invokes. The path refers to the function by
    its deployed name.
    """
    uri = path["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
    return resource_of(re.search(r"[$][{]AWS::StackName[}]-([a-z-]+)/invocations$", uri)[1])


def resource_of(crate: str) -> str:
    """Returns the resource of the function of a crate."""
    return f"{crate.title().replace('-', '')}Function"


def test_functions_are_called_as_the_api_calls_them(template):
    for resource, function in of_type(template["Resources"], "AWS::Serverless::Function").items():
        crate = function["Properties"]["CodeUri"].removeprefix("functions/")
        assert function["Properties"]["FunctionName"] == {"Fn::Sub": f"${{AWS::StackName}}-{crate}"}, resource


def test_no_resources_need_each_other(resources):
    """Checks that resources have no circular dependencies, which CloudFormation refuses. Names in
    the API's OpenAPI body are not dependencies, so the API can be created before the functions.
    """

    def named(value: object) -> set[str]:
        if isinstance(value, dict):
            found = set().union(*map(named, value.values()))
            if isinstance(value.get("Ref"), str):
                found.add(value["Ref"])
            if "Fn::GetAtt" in value:
                found.add(value["Fn::GetAtt"][0])
            if "Fn::Sub" in value:
                text = value["Fn::Sub"] if isinstance(value["Fn::Sub"], str) else value["Fn::Sub"][0]
                found |= {name.partition(".")[0] for name in re.findall(r"[$][{]([^}!]+)[}]", text)}
            return found
        if isinstance(value, list):
            return set().union(*map(named, value))
        return set()

    left = {name: (named(resource) & resources.keys()) - {name} for name, resource in resources.items()}
    while made := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in made}
    assert left == {}


def test_each_path_reaches_a_function_that_the_gateway_may_call(template, resources):
    assert paths(template)["/$default"]["x-amazon-apigateway-any-method"]["isDefaultRoute"] is True
    permissions = of_type(resources, "AWS::Lambda::Permission").values()
    of_gateway = [one["Properties"] for one in permissions if one["Properties"]["Principal"] == "apigateway.amazonaws.com"]
    called = {permission["FunctionName"]["Ref"] for permission in of_gateway}
    assert called == {function_of(path) for path in paths(template).values()}
    for path in paths(template).values():
        assert resources[function_of(path)]["Type"] == "AWS::Lambda::Function"
        integration = path["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]
        assert (integration["type"], integration["payloadFormatVersion"]) == ("aws_proxy", "2.0")


def test_the_gateway_and_watch_send_the_same_paths_to_the_same_function(template):
    router = manifest(REPOSITORY)["workspace"]["metadata"]["lambda"]["watch"]["router"]
    watched = {path: resource_of(crate) for path, crate in router.items()}
    pattern = {path: "/{*path}" if path == "/$default" else path.replace("{proxy+}", "{*path}") for path in paths(template)}
    assert {pattern[path]: function_of(said) for path, said in paths(template).items()} == watched


def test_each_path_asks_who_is_calling(template):
    for path in paths(template).values():
        [signed, open_to_all] = path["x-amazon-apigateway-any-method"]["security"]["Fn::If"][1:]
        assert path["x-amazon-apigateway-any-method"]["security"]["Fn::If"][0] == "IsSigned"
        assert (signed, open_to_all) == ([{"sigv4": []}], {"Ref": "AWS::NoValue"})
    schemes = template["Resources"]["Api"]["Properties"]["Body"]["components"]["securitySchemes"]
    assert schemes["sigv4"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert template["Conditions"]["IsSigned"] == {"Fn::Equals": [{"Ref": "Authorization"}, "AWS_IAM"]}
    assert template["Parameters"]["Authorization"]["Default"] == "AWS_IAM"


def test_users_have_an_api_of_their_own_where_it_is_wanted(template, resources):
    assert template["Parameters"]["Users"]["Default"] == "off"
    assert template["Conditions"]["HasUsersApi"] == {"Fn::Equals": [{"Ref": "Users"}, "on"]}
    body = resources["UsersApi"]["Properties"]["Body"]
    signed = {path: dict(said["x-amazon-apigateway-any-method"]) for path, said in paths(template).items()}
    for said in signed.values():
        del said["security"]
    assert {path: said["x-amazon-apigateway-any-method"] for path, said in body["paths"].items()} == signed
    # Both APIs may call the same functions. The permissions for the API of users have that API's
    # condition.
    permissions = of_type(resources, "AWS::Lambda::Permission").values()
    sources: dict[str, set] = {}
    for permission in permissions:
        of = permission["Properties"].get("SourceArn", {}).get("Fn::Sub", "")
        sources.setdefault("UsersApi" if "${UsersApi}" in of else "Api" if "${Api}" in of else "", set()).add(
            (permission["Properties"]["FunctionName"]["Ref"], permission.get("Condition"))
        )
    assert {name for name, _ in sources["Api"]} == {name for name, _ in sources["UsersApi"]}
    assert {condition for _, condition in sources["UsersApi"]} == {"HasUsersApi"}
    for name in ["UsersApi", "UsersApiStage"]:
        assert resources[name]["Condition"] == "HasUsersApi"
    for function in of_type(resources, "AWS::Serverless::Function").values():
        mode = function["Properties"]["Environment"]["Variables"].get("ACCESS_MODE")
        assert mode in (None, {"Fn::If": ["HasUsersApi", "both", {"Ref": "AccessMode"}]})
    # Parameters that would open routes or lock out users are refused before anything is changed.
    # tests/deployed/test_parameters.py violates each rule.
    assert set(template["Rules"]) == {
        "AnExistingTableHasAStream", "UsersBesideSignedCallers", "PasswordsAreNotSigned", "ANameHasACertificate",
        "UsersHaveAnApiBeforeTheyHaveAName", "NothingIsSaidOfNoName", "ReadsAndWritesAreBoundTogether",
        "AClosedAddressIsReplaced", "WarmUnitsBelongTogether",
    }


def arn(of: str, below: str = "") -> dict:
    """Returns the ARN of a table of the stack, or of the existing one that a parameter names."""
    named = {"Fn::If": [f"HasOwn{of}", {"Ref": of}, {"Ref": f"Existing{of}"}]}
    return {"Fn::Sub": [f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{Name}}{below}", {"Name": named}]}


#: Resources of the functions' permissions. There are no other permissions, and none for scans.
TABLE = [arn("Table"), arn("Table", "/index/*")]
#: The registry queries aliases and stages, and looks up runs whose ids were generated elsewhere.
REGISTRY_TABLE = TABLE[:1] + [arn("Table", f"/index/{index}") for index in ["LSI1", "LSI2", "GSI1"]]
#: Lookups by id: the runs of artifacts, the runs that traces are linked to, and traces by the
#: client's request id.
RUNS = TABLE[:1] + [arn("Table", "/index/GSI1")]
#: Lookups for packed traces: their end times, and traces by the client's request id.
PACKED = TABLE[:1] + [arn("Table", f"/index/{index}") for index in ["LSI1", "GSI1"]]
EXISTING_STREAM = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${ExistingTable}/stream/${ExistingTableStream}"
STREAM_ARN = {"Fn::If": ["HasOwnTable", {"Fn::GetAtt": ["Table", "StreamArn"]}, {"Fn::Sub": EXISTING_STREAM}]}
ITEMS = {
    f"dynamodb:{action}Item" for action in ["BatchGet", "BatchWrite", "ConditionCheck", "Delete", "Get", "Put", "Update"]
} | {"dynamodb:Query"}
#: The bucket with the artifacts, and the files below its prefix.
BUCKET = {
    "Fn::If": ["HasOwnBucket", {"Ref": "ArtifactBucket"}, {"Fn::Select": [2, {"Fn::Split": ["/", {"Fn::Sub": "${ArtifactRoot}///"}]}]}]
}
PATH = {
    "Fn::If": ["HasOwnBucket", {"Ref": "ArtifactBucket"}, {"Fn::Select": [1, {"Fn::Split": ["s3://", {"Fn::Sub": "${ArtifactRoot}s3://"}]}]}]
}
LISTS_FILES = ({"s3:ListBucket"}, {"Fn::Sub": ["arn:${AWS::Partition}:s3:::${Bucket}", {"Bucket": BUCKET}]})
FILES = {"Fn::Sub": ["arn:${AWS::Partition}:s3:::${Path}/*", {"Path": PATH}]}
READS_FILES = [LISTS_FILES, ({"s3:GetObject"}, FILES)]
CHANGES = ["AbortMultipartUpload", "DeleteObject", "GetObject", "ListMultipartUploadParts", "PutObject"]
WRITES_FILES = [LISTS_FILES, ({f"s3:{action}" for action in CHANGES}, FILES)]
STREAM = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}


def statements(resources: dict, role: str) -> list[tuple[set[str], object]]:
    """Returns the permissions of a role, except those for writing its log."""
    [policy] = resources[role]["Properties"]["Policies"]
    log, *found = policy["PolicyDocument"]["Statement"]
    assert all(statement.get("Effect", "Allow") == "Allow" for statement in [log, *found])
    # Restricted to its log group, and without permission to create one: a late call would otherwise
    # create a log group after the stack is deleted.
    group = f"{role.removesuffix('FunctionRole')}Log"
    assert (actions(log["Action"]), log["Resource"]) == ({"logs:CreateLogStream", "logs:PutLogEvents"}, {"Fn::GetAtt": [group, "Arn"]})
    assert resources[group]["Type"] == "AWS::Logs::LogGroup"
    return [(actions(statement["Action"]), statement["Resource"]) for statement in found if "Fn::If" not in statement]


def keys_of(resources: dict, role: str) -> dict[str, set[str]]:
    """Returns the permissions of a role for the KMS keys that parameters name, by parameter."""
    [policy] = resources[role]["Properties"]["Policies"]
    found = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        if "Fn::If" in statement and statement["Fn::If"][0] != "IsTraced":
            condition, there, otherwise = statement["Fn::If"]
            key = condition.removeprefix("Has")
            assert (there["Effect"], there["Resource"], otherwise) == ("Allow", {"Ref": key}, {"Ref": "AWS::NoValue"})
            found[key] = actions(there["Action"])
    return found


def actions(named: str | list[str]) -> set[str]:
    return {named} if isinstance(named, str) else set(named)


#: The function that the indexer invokes.
DELIVER = {"Fn::Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-deliver"}


def test_functions_may_do_only_what_they_do(resources):
    assert set(of_type(resources, "AWS::IAM::Role")) == {
        "TrackingFunctionRole", "EvaluationFunctionRole", "RegistryFunctionRole", "IndexerFunctionRole", "UiFunctionRole",
        "ArtifactsFunctionRole", "GraphqlFunctionRole", "TracesFunctionRole", "AuthFunctionRole",
        "HousekeeperFunctionRole", "WebhooksFunctionRole", "DeliverFunctionRole",
        "McpServersFunctionRole", "SkillsFunctionRole",
    }
    looks_up = {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}
    # Only one function writes users and their roles. The others read them.
    access = arn("AccessTable")
    knows_users = ({"dynamodb:BatchGetItem"}, access)
    # The permissions of functions without conditions on items that they do not write.
    changes = ITEMS - {"dynamodb:ConditionCheckItem"}
    # The functions `webhooks` and `deliver` write items individually, without batches.
    batches = {"dynamodb:BatchWriteItem"}
    client_secrets = {"Fn::Sub": "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/mlflow/${AWS::StackName}/sign-on/*"}
    assert statements(resources, "AuthFunctionRole") == [
        (ITEMS, TABLE[0]), (ITEMS, access), ({"ssm:GetParameter"}, client_secrets),
    ]
    assert "StreamSpecification" not in resources["AccessTable"]["Properties"]
    assert statements(resources, "TrackingFunctionRole") == [(ITEMS, TABLE), knows_users, *READS_FILES]
    # Sorts the items of review queues, and finds runs whose ids other servers made.
    reviews = TABLE[:1] + [arn("Table", f"/index/{index}") for index in ["LSI1", "GSI1"]]
    assert statements(resources, "EvaluationFunctionRole") == [(ITEMS, reviews), knows_users]
    assert statements(resources, "RegistryFunctionRole") == [(ITEMS, REGISTRY_TABLE), knows_users, *READS_FILES]
    long_answers = {"Fn::Sub": ["arn:${AWS::Partition}:s3:::${Path}/.answers/*", {"Path": PATH}]}
    assert statements(resources, "TracesFunctionRole") == [
        (changes, RUNS), knows_users, *READS_FILES, ({"s3:DeleteObject"}, FILES), ({"s3:PutObject"}, long_answers),
    ]
    assert statements(resources, "ArtifactsFunctionRole") == [(looks_up, RUNS), knows_users, *WRITES_FILES]
    # Every archive fits into a request, so no file needs a multipart upload.
    stores = ({"s3:DeleteObject", "s3:PutObject"}, FILES)
    assert statements(resources, "SkillsFunctionRole") == [(ITEMS, TABLE[0]), knows_users, LISTS_FILES, stores]
    # Writes only whole items.
    assert statements(resources, "McpServersFunctionRole") == [(ITEMS - {"dynamodb:UpdateItem"}, TABLE[0]), knows_users]
    assert statements(resources, "GraphqlFunctionRole") == [(looks_up, TABLE), knows_users, LISTS_FILES]
    assert statements(resources, "UiFunctionRole") == [knows_users]
    delivers = {"Fn::Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-deliver"}
    assert statements(resources, "WebhooksFunctionRole") == [
        (ITEMS - batches, TABLE[0]), knows_users, ({"lambda:InvokeFunction"}, delivers),
    ]
    archive = {"Fn::Sub": ["arn:${AWS::Partition}:s3:::${Path}/.archive/*", {"Path": PATH}]}
    assert statements(resources, "IndexerFunctionRole") == [
        (changes, PACKED),
        (STREAM, STREAM_ARN),
        ({"dynamodb:ListStreams"}, arn("Table", "/stream/*")),
        ({"sqs:SendMessage"}, {"Fn::GetAtt": ["IndexerFailures", "Arn"]}),
        LISTS_FILES,
        ({"s3:GetObject"}, archive),
        ({"lambda:InvokeFunction"}, DELIVER),
    ]
    # Sends requests to addresses that users choose.
    assert statements(resources, "DeliverFunctionRole") == [(changes - batches, TABLE[0])]
    [limited] = [
        statement
        for policy in resources["DeliverFunctionRole"]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if "Condition" in statement
    ]
    assert limited["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["HOOK#*"]}}
    # Reads deleted entities, blocks of traces, and all runs of an experiment. Deletes files, and
    # archives traces.
    lists = TABLE[:1] + [arn("Table", f"/index/{index}") for index in ["LSI1", "LSI2"]]
    assert statements(resources, "HousekeeperFunctionRole") == [(ITEMS, lists), *WRITES_FILES]
    for name, role in of_type(resources, "AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role["Properties"]
        assert resources[name.removesuffix("Role")]["Properties"]["Role"] == {"Fn::GetAtt": [name, "Arn"]}
        [trusted] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert trusted == {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}


def test_functions_may_use_the_keys_that_encrypt_what_they_use(template, resources):
    """Checks the functions' permissions for KMS keys, because DynamoDB and S3 use a key with the
    permissions of their caller.
    """
    reads, writes = {"kms:Decrypt"}, {"kms:Decrypt", "kms:GenerateDataKey"}
    assert {role: keys_of(resources, role) for role in of_type(resources, "AWS::IAM::Role")} == {
        "TrackingFunctionRole": {"TableKey": reads, "BucketKey": reads},
        "EvaluationFunctionRole": {"TableKey": reads},
        "RegistryFunctionRole": {"TableKey": reads, "BucketKey": reads},
        "TracesFunctionRole": {"TableKey": reads, "BucketKey": writes},
        "ArtifactsFunctionRole": {"TableKey": reads, "BucketKey": writes},
        "AuthFunctionRole": {"TableKey": reads},
        "GraphqlFunctionRole": {"TableKey": reads},
        "UiFunctionRole": {"TableKey": reads},
        "IndexerFunctionRole": {"TableKey": reads, "BucketKey": reads},
        "HousekeeperFunctionRole": {"TableKey": reads, "BucketKey": writes},
        "WebhooksFunctionRole": {"TableKey": reads, "SecretsKey": {"kms:GenerateDataKey"}},
        "DeliverFunctionRole": {"TableKey": reads, "SecretsKey": reads},
        "McpServersFunctionRole": {"TableKey": reads},
        "SkillsFunctionRole": {"TableKey": reads, "BucketKey": {"kms:GenerateDataKey"}},
    }
    nothing = {"Ref": "AWS::NoValue"}
    for name in ["TableKey", "BucketKey", "LogKey", "SecretsKey"]:
        assert template["Parameters"][name]["Default"] == ""
        assert template["Conditions"][f"Has{name}"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]}
    encrypted = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": {"Ref": "TableKey"}}
    for name in ["Table", "AccessTable"]:
        assert resources[name]["Properties"]["SSESpecification"] == {"Fn::If": ["HasTableKey", encrypted, nothing]}
    for group in of_type(resources, "AWS::Logs::LogGroup").values():
        assert group["Properties"]["KmsKeyId"] == {"Fn::If": ["HasLogKey", {"Ref": "LogKey"}, nothing]}


def test_each_table_and_each_global_index_is_bounded_where_the_operator_says_so(template, resources):
    units = {"MaxReadRequestUnits": {"Ref": "MaxReadUnits"}, "MaxWriteRequestUnits": {"Ref": "MaxWriteUnits"}}
    bound = {"Fn::If": ["HasUnitLimits", units, {"Ref": "AWS::NoValue"}]}
    tables = [resources[name]["Properties"] for name in ("Table", "AccessTable")]
    indexes = [index for table in tables for index in table.get("GlobalSecondaryIndexes", [])]
    assert len(indexes) == 5
    assert [one["OnDemandThroughput"] for one in [*tables, *indexes]] == [bound] * 7
    assert not any("OnDemandThroughput" in index for index in tables[0]["LocalSecondaryIndexes"])
    assert template["Parameters"]["MaxReadUnits"]["Default"] == template["Parameters"]["MaxWriteUnits"]["Default"] == 0


def test_no_resource_type_is_missing_in_a_region(resources):
    """Checks that the template has no budget, because some regions do not support the type. They
    would refuse the whole template, even if a condition excluded the resource. `tools/deploy`
    creates the budget instead.
    """
    assert not any(resource["Type"].startswith("AWS::Budgets::") for resource in resources.values())


def test_each_environment_has_the_tag_by_which_the_budget_finds_its_costs():
    config = tomllib.loads((REPOSITORY / "samconfig.toml").read_text())
    for environment in (config[name] for name in config if name != "version"):
        name = environment["global"]["parameters"]["stack_name"]
        assert environment["deploy"]["parameters"]["tags"] == f"mlflow-stack={name}"


def test_what_is_said_of_calls_is_said_by_parameters_and_alarms_hear_of_warnings(template, resources):
    for name, function in of_type(resources, "AWS::Lambda::Function").items():
        log = function["Properties"]["LoggingConfig"]
        assert {key: log[key] for key in ("SystemLogLevel", "ApplicationLogLevel")} == {
            "SystemLogLevel": {"Ref": "SystemLogLevel"}, "ApplicationLogLevel": {"Ref": "ApplicationLogLevel"},
        }, name
    # Filtered log lines do not reach metrics. Therefore alarms must count warnings and errors only.
    for name, default in (("SystemLogLevel", "WARN"), ("ApplicationLogLevel", "INFO")):
        assert (template["Parameters"][name]["Default"], template["Parameters"][name]["AllowedValues"]) == (default, ["INFO", "WARN"])
    for metric in of_type(resources, "AWS::Logs::MetricFilter").values():
        said = re.search(r'message = "(.+)"', metric["Properties"]["FilterPattern"])[1]
        assert re.search(rf'(warn|error)!\([^;]*"{said}"\)', "".join(path.read_text() for path in SOURCES)), said


#: Sources of the messages that alarms count.
SOURCES = [REPOSITORY / path for path in (
    "shared/http/service/src/endpoint_response.rs", "shared/storage/table/src/collection_size.rs", "functions/fts-indexer/src/record_failures.rs",
    "functions/fts-indexer/src/lib.rs", "functions/housekeeper/src/main.rs", "functions/deliver/src/queue_delivery.rs",
)]


def test_a_name_of_ones_own_leads_to_one_api_as_a_whole(template, resources):
    """Checks that a custom domain maps to the whole API. With a mapping key, functions would
    receive paths with a prefix that no route matches.
    """
    for name, api, parameter in [("Domain", "Api", "DomainName"), ("UsersDomain", "UsersApi", "UsersDomainName")]:
        assert resources[name]["Properties"]["DomainName"] == {"Ref": parameter}
        mapping = resources[f"{name}Mapping"]
        assert mapping["Properties"] == {"ApiId": {"Ref": api}, "DomainName": {"Ref": name}, "Stage": {"Ref": f"{api}Stage"}}
        record = resources[f"{name}Record"]
        assert record["Properties"]["AliasTarget"] == {
            "DNSName": {"Fn::GetAtt": [name, "RegionalDomainName"]}, "HostedZoneId": {"Fn::GetAtt": [name, "RegionalHostedZoneId"]},
        }
        assert (resources[name]["Condition"], mapping["Condition"], record["Condition"]) == (f"Has{name}", f"Has{name}", f"Has{name}Record")
        assert {f"{name}Uri", f"{name}Target"} <= set(template["Outputs"])
        for parameter in (parameter, "DomainCertificate", "DomainZone"):
            assert template["Parameters"][parameter]["Default"] == ""


#: Environment variables for authentication.
SIGN_IN = {
    *("WORKSPACES", "ACCESS_MODE", "ACCESS_TABLE_NAME", "DEFAULT_PERMISSION", "CREATORS", "SIGNED_USER"),
    *("PASSWORDS", "PASSWORD_ADMINISTRATORS"),
}


def test_functions_know_only_what_they_need(resources):
    known = {
        name: set(function["Properties"].get("Environment", {"Variables": {}})["Variables"])
        for name, function in of_type(resources, "AWS::Lambda::Function").items()
    }
    assert known == {
        "TrackingFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION", "ARTIFACTS_PRESIGNED_ONLY"},
        "EvaluationFunction": SIGN_IN | {"TABLE_NAME"},
        "RegistryFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION"},
        "IndexerFunction": {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION", "RUN_INDEXING_INTERVAL", "WORKSPACES"},
        "ArtifactsFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION", "MAX_ARTIFACT_SIZE"},
        "GraphqlFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION"},
        "TracesFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION"},
        "AuthFunction": SIGN_IN | {"TABLE_NAME", "SIGN_ON_SECRETS"},
        "UiFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACTS_ORIGIN"},
        "HousekeeperFunction": {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION", "WORKSPACES"},
        "WebhooksFunction": SIGN_IN | {"TABLE_NAME", "SECRETS_KEY"},
        "DeliverFunction": {"TABLE_NAME", "SECRETS_KEY", "WORKSPACES"},
        "McpServersFunction": SIGN_IN | {"TABLE_NAME"},
        "SkillsFunction": SIGN_IN | {"TABLE_NAME", "ARTIFACT_ROOT", "ARTIFACTS_DESTINATION"},
    }


@pytest.fixture
def mapping(resources) -> dict:
    """Returns the properties of the only event source mapping."""
    [mapping] = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    return mapping["Properties"]


def test_the_stream_feeds_the_indexer(mapping):
    assert mapping["FunctionName"] == {"Ref": "IndexerFunction"}
    assert mapping["EventSourceArn"] == STREAM_ARN
    # Indexes records that were written before the mapping is created.
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["BatchSize"] == 1000
    assert mapping["MaximumBatchingWindowInSeconds"] == {"Ref": "IndexingDelay"}
    # The indexer requires that records of an experiment are processed sequentially.
    assert mapping["ParallelizationFactor"] == 1


def test_a_change_that_cannot_be_indexed_holds_up_no_other(mapping, resources):
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    # The function itself gives up records that fail for other reasons than throttling, and logs
    # them.
    assert mapping["MaximumRetryAttempts"] == -1
    # The stream expires records after 24 hours. Before that, remaining records go to the queue.
    assert mapping["MaximumRecordAgeInSeconds"] == 23 * 60 * 60
    said = re.search(r'\$\.fields\.message = "(.+)"', resources["ChangesLeftBehindMetric"]["Properties"]["FilterPattern"])
    assert f'"{said[1]}");' in (REPOSITORY / "functions/fts-indexer/src/record_failures.rs").read_text()
    [metric] = resources["ChangesLeftBehindMetric"]["Properties"]["MetricTransformations"]
    alarm = resources["ChangesLeftBehind"]["Properties"]
    assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": ["IndexerFailures", "Arn"]}}}
    queue = resources["IndexerFailures"]["Properties"]
    assert queue == {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 24 * 60 * 60}


def test_a_partition_that_is_nearly_full_is_told_of(resources):
    alarm = resources["PartitionNearlyFull"]["Properties"]
    for function in ("Tracking", "Indexer", "Traces", "Evaluation", "Registry", "Auth", "Housekeeper", "Deliver"):
        properties = resources[f"{function}PartitionsMetric"]["Properties"]
        assert properties["LogGroupName"] == {"Ref": f"{function}Log"}
        said = re.search(r'\$\.fields\.message = "(.+)"', properties["FilterPattern"])
        assert f'"{said[1]}");' in (REPOSITORY / "shared/storage/table/src/collection_size.rs").read_text()
        [metric] = properties["MetricTransformations"]
        assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])


def test_deliveries_that_have_failed_for_good_are_told_of(resources):
    metric = resources["DeadDeliveriesMetric"]["Properties"]
    assert metric["LogGroupName"] == {"Ref": "DeliverLog"}
    assert metric["FilterPattern"] == '{ $.fields.message = "a delivery has failed for good" }'
    [counted] = metric["MetricTransformations"]
    alarm = resources["DeadDeliveries"]["Properties"]
    assert (counted["MetricNamespace"], counted["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert (alarm["Statistic"], alarm["Threshold"], alarm["ComparisonOperator"]) == ("Sum", 0, "GreaterThanThreshold")


def test_a_housekeeper_that_is_behind_for_a_day_is_told_of(resources):
    metric = resources["HousekeepingBehindMetric"]["Properties"]
    assert metric["LogGroupName"] == {"Ref": "HousekeeperLog"}
    said = re.search(r'\$\.fields\.message = "(.+)"', metric["FilterPattern"])
    assert f'"{said[1]}");' in (REPOSITORY / "functions/housekeeper/src/main.rs").read_text()
    [counted] = metric["MetricTransformations"]
    alarm = resources["HousekeepingBehind"]["Properties"]
    assert (counted["MetricNamespace"], counted["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    # One call per period. CloudWatch evaluates a day at most, if periods are shorter than that.
    assert of_schedule(resources, "Housekeeper")["ScheduleExpression"] == "rate(1 hour)"
    assert (alarm["Period"], alarm["EvaluationPeriods"] * alarm["Period"]) == (3600, 24 * 60 * 60)
    assert alarm["DatapointsToAlarm"] <= alarm["EvaluationPeriods"]


def test_the_indexer_gets_what_the_local_feed_delivers(mapping):
    patterns = [json.loads(item["Pattern"]) for item in mapping["FilterCriteria"]["Filters"]]
    # Lambda documents no other key of a record for the filter of a DynamoDB stream.
    assert {key for pattern in patterns for key in pattern} == {"dynamodb"}
    cases = json.loads((REPOSITORY / "tests/lambda/filter_cases.json").read_text())
    for case in cases:
        assert any(matches(pattern, case["record"]) for pattern in patterns) is case["wanted"], case["about"]


def of_schedule(resources: dict, name: str) -> dict:
    """Returns the properties of a schedule, after checking its target, and the retries and maximum
    age of its events.
    """
    rule, retries = (resources[f"{name}{of}"]["Properties"] for of in (_SCHEDULES[name], "Retries"))
    function = f"{name.removesuffix('Tick')}Function"
    [target] = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [function, "Arn"]}
    # The indexer recognizes a batch of the stream by its records.
    assert "Records" not in json.loads(target["Input"])
    assert resources[f"{name}Permission"]["Properties"] == {
        "Action": "lambda:InvokeFunction",
        "FunctionName": {"Ref": function},
        "Principal": "events.amazonaws.com",
        "SourceArn": {"Fn::GetAtt": [f"{name}{_SCHEDULES[name]}", "Arn"]},
    }
    assert (retries["FunctionName"], retries["Qualifier"]) == ({"Ref": function}, "$LATEST")
    # Events must not outlive the interval, so that calls do not accumulate during an outage.
    seconds = {"rate(1 minute)": 60, "rate(1 hour)": 3600}[rule["ScheduleExpression"]]
    assert (retries["MaximumRetryAttempts"], retries["MaximumEventAgeInSeconds"]) == (0, seconds)
    # A call must time out before the next one begins, or after at most two minutes if an overlap is
    # harmless.
    assert resources[function]["Properties"]["Timeout"] <= max(seconds, 120)
    return rule


#: Suffix of each schedule's rule.
_SCHEDULES = {"IndexerTick": "", "Housekeeper": "Schedule"}


def test_no_call_of_a_schedule_is_kept_for_longer_than_its_interval(resources):
    rules = {f"{name}{of}" for name, of in _SCHEDULES.items()}
    assert of_type(resources, "AWS::Events::Rule").keys() == rules
    # The indexer invokes `deliver`, with the tick as its schedule.
    assert len(of_type(resources, "AWS::Lambda::EventInvokeConfig")) == len(rules) + 1
    for name in _SCHEDULES:
        of_schedule(resources, name)


def test_the_indexer_looks_once_a_minute_at_what_it_put_off(template, resources):
    assert of_schedule(resources, "IndexerTick")["ScheduleExpression"] == "rate(1 minute)"
    variables = resources["IndexerFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["RUN_INDEXING_INTERVAL"] == {"Ref": "RunIndexingInterval"}
    assert template["Parameters"]["RunIndexingInterval"]["Default"] == 60


def test_what_policies_keep_no_longer_is_removed_once_an_hour(template, resources):
    rule = of_schedule(resources, "Housekeeper")
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert rule["State"] == {"Fn::If": ["DoesHousekeeping", "ENABLED", "DISABLED"]}
    assert template["Parameters"]["Housekeeping"]["Default"] == "on"
    # The function must stop before Lambda's timeout.
    slice_ = re.search(r"MAX_DURATION: Duration = Duration::from_mins\((\d+)\)", (REPOSITORY / "functions/housekeeper/src/lib.rs").read_text())
    assert int(slice_[1]) * 60 + 30 <= resources["HousekeeperFunction"]["Properties"]["Timeout"]


def matches(pattern: dict, value: object) -> bool:
    """Returns whether Lambda's filter accepts a record. Implements only the rules that the template
    uses.
    """
    for name, wanted in pattern.items():
        part = value.get(name) if isinstance(value, dict) else None
        if isinstance(wanted, dict):
            fits = matches(wanted, part)
        elif wanted in ([{"exists": True}], [{"exists": False}]):
            # `exists` refers only to leaves. A leaf does not exist either if its parent does not.
            fits = (part is not None and not isinstance(part, dict)) is wanted[0]["exists"]
        else:
            assert all(isinstance(one, str) for one in wanted), f"unsupported rule: {wanted}"
            fits = part in wanted
        if not fits:
            return False
    return True


def test_each_alarm_reaches_the_topic(template, resources):
    alarms = of_type(resources, "AWS::CloudWatch::Alarm")
    default = {name for name, alarm in alarms.items() if "Condition" not in alarm}
    # ChangesLeftBehind and PartitionNearlyFull are on by default, because an operator has to act
    # before data is lost.
    assert default == {"ServerErrors", "IndexerLag", "TableThrottles", "ChangesLeftBehind", "PartitionNearlyFull"}
    assert alarms.keys() - default == {"IndexerErrors", "DeliverErrors", "HousekeeperErrors", "ChangesNotIndexed", "IndexerBehind", "ClientErrors", "HousekeepingBehind", "DeadDeliveries"}
    assert {alarms[name]["Condition"] for name in alarms.keys() - default} == {"HasMoreAlarms"}
    assert template["Conditions"]["HasMoreAlarms"] == {"Fn::Equals": [{"Ref": "MoreAlarms"}, "on"]}
    assert template["Parameters"]["MoreAlarms"]["Default"] == "off"
    for alarm in alarms.values():
        condition, (topic,), _ = alarm["Properties"]["AlarmActions"]["Fn::If"]
        assert (condition, topic) == ("HasAlarmTopic", {"Ref": "AlarmTopic"})


def metrics_of(alarm: dict, with_users: bool = False) -> tuple[str, dict[str, dict]]:
    """Returns the expression of an alarm, and its metrics."""

    def decided(value: object) -> object:
        return value["Fn::If"][1 if with_users else 2] if isinstance(value, dict) and "Fn::If" in value else value

    found = [one for one in map(decided, alarm["Metrics"]) if one != {"Ref": "AWS::NoValue"}]
    [expression] = [decided(one["Expression"]) for one in found if one["ReturnData"]]
    return expression, {one["Id"]: one["MetricStat"] for one in found if not one["ReturnData"]}


@pytest.mark.parametrize("with_users", [False, True])
def test_a_share_of_errors_rings_and_a_single_one_does_not(resources, with_users: bool):
    alarm = resources["ServerErrors"]["Properties"]
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (2, 3, "notBreaching")
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 1)
    expression, metrics = metrics_of(alarm, with_users)
    assert set(re.findall(r"\b[a-z][a-z_]+\b", expression)) == metrics.keys()
    apis = {"Api", "UsersApi"} if with_users else {"Api"}
    for name in ("5xx", "Count"):
        of = [one["Metric"]["Dimensions"] for one in metrics.values() if one["Metric"]["MetricName"] == name]
        assert {dimension["Value"]["Ref"] for [dimension] in of} == apis
    assert {(one["Metric"]["Namespace"], one["Period"], one["Stat"]) for one in metrics.values()} == {("AWS/ApiGateway", 300, "Sum")}


def test_a_change_that_is_not_indexed_for_an_hour_rings_and_so_does_silence(resources):
    alarm = resources["IndexerLag"]["Properties"]
    # An hour in ms. The stream keeps records for a day.
    assert (alarm["ComparisonOperator"], alarm["Threshold"], alarm["EvaluationPeriods"]) == ("GreaterThanThreshold", 60 * 60 * 1000, 3)
    # If the stream is not read, there is no metric, and the state becomes INSUFFICIENT_DATA. A new
    # alarm starts in this state, and sends no notification until it has left the state once.
    assert alarm["TreatMissingData"] == "missing"
    assert alarm["InsufficientDataActions"] == alarm["AlarmActions"] == {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]}
    expression, metrics = metrics_of(alarm)
    # If nothing changes and the stream is read, the value is 0, and the alarm stays off.
    assert expression == "MAX([age, 0 * reads])"
    age, reads = metrics["age"], metrics["reads"]
    assert (age["Metric"]["MetricName"], age["Stat"]) == ("IteratorAge", "Maximum")
    assert age["Metric"]["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "IndexerFunction"}}]
    assert (reads["Metric"]["MetricName"], reads["Stat"]) == ("SuccessfulRequestLatency", "SampleCount")
    dimensions = {one["Name"]: one["Value"] for one in reads["Metric"]["Dimensions"]}
    assert dimensions["Operation"] == "GetRecords"
    own = {"Fn::Select": [3, {"Fn::Split": ["/", {"Fn::GetAtt": ["Table", "StreamArn"]}]}]}
    assert dimensions["StreamLabel"] == {"Fn::If": ["HasOwnTable", own, {"Fn::Sub": "${ExistingTableStream}"}]}


def test_an_indexer_that_is_behind_rings_before_searches_suffer(resources):
    alarm = resources["IndexerBehind"]["Properties"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "IteratorAge", "Maximum")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "IndexerFunction"}}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 5 * 60 * 1000)


@pytest.mark.parametrize("with_users", [False, True])
def test_many_refused_requests_ring_and_few_do_not(template, resources, with_users: bool):
    alarm = resources["ClientErrors"]["Properties"]
    expression, metrics = metrics_of(alarm, with_users)
    assert set(re.findall(r"\b[a-z][a-z_]+\b", expression)) == metrics.keys()
    apis = [one["Metric"]["Dimensions"][0]["Value"]["Ref"] for one in metrics.values()]
    assert apis == (["Api", "UsersApi"] if with_users else ["Api"])
    assert {one["Metric"]["MetricName"] for one in metrics.values()} == {"4xx"}
    # An attacker who exhausts the rate of the API for users exceeds the threshold several times
    # over.
    periods = {one["Period"] for one in metrics.values()}
    assert 3 * alarm["Threshold"] < template["Parameters"]["UsersRequestRate"]["Default"] * min(periods)


def test_there_are_few_metrics_of_our_own_and_none_by_route(resources):
    """Checks the number of custom metrics. Each is billed for the hours in which it has a value."""
    metrics = [metric["Properties"]["MetricTransformations"] for metric in of_type(resources, "AWS::Logs::MetricFilter").values()]
    assert len({one["MetricName"] for [one] in metrics}) <= 5
    assert not any("Dimensions" in one for [one] in metrics)


@pytest.mark.parametrize("has_users", [False, True])
def test_the_dashboard_shows_what_is_there(resources, has_users: bool):
    [dashboard] = of_type(resources, "AWS::CloudWatch::Dashboard").values()
    body, more = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
    for name in ("UsersRequests", "UsersTimes"):
        [condition, there, not_there] = more[name]["Fn::If"]
        assert (condition, not_there) == ("HasUsersApi", "")
        body = body.replace(f"${{{name}}}", there["Fn::Sub"] if has_users else "")
    for named in re.findall(r"[$][{]([^}]+)[}]", body):
        assert named in more or named.startswith("AWS::") or named.partition(".")[0] in resources, named
    shown = json.loads(body)["widgets"]
    assert {widget["type"] for widget in shown} == {"alarm", "metric"}
    # An account has free dashboards with up to 50 metrics each.
    assert 10 < sum(len(widget["properties"].get("metrics", [])) for widget in shown) < 50
    # Alarms that are off by default cannot be shown.
    alarms = {name.removesuffix(".Arn}").removeprefix("${") for name in shown[0]["properties"]["alarms"]}
    assert alarms == {name for name, alarm in of_type(resources, "AWS::CloudWatch::Alarm").items() if "Condition" not in alarm}


def test_throttling_of_the_table_and_of_its_indexes_is_told_of(template, resources):
    alarm = resources["TableThrottles"]["Properties"]
    for path in paths(template).values():
        function = function_of(path).removesuffix("Function")
        properties = resources[f"{function}ThrottledMetric"]["Properties"]
        assert properties["LogGroupName"] == {"Ref": f"{function}Log"}
        said = re.search(r'\$\.fields\.message = "(.+)"', properties["FilterPattern"])
        assert f'"{said[1]}");' in (REPOSITORY / "shared/http/service/src/endpoint_response.rs").read_text()
        [metric] = properties["MetricTransformations"]
        assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    # The indexer handles no calls. If it is throttled, it logs that the stream has to deliver the
    # rest of a batch again.
    properties = resources["IndexerThrottledMetric"]["Properties"]
    assert properties["LogGroupName"] == {"Ref": "IndexerLog"}
    assert properties["MetricTransformations"][0]["MetricName"] == alarm["MetricName"]


def test_the_stage_is_throttled_below_what_fills_an_account(template, resources):
    parameters = template["Parameters"]
    settings = resources["ApiStage"]["Properties"]["DefaultRouteSettings"]
    assert settings == {"ThrottlingRateLimit": {"Ref": "RequestRate"}, "ThrottlingBurstLimit": {"Ref": "RequestBurst"}}
    # At most 1,000 concurrent executions, if throttled calls to both APIs take half a second each.
    users, burst = (parameters[f"UsersRequest{name}"]["Default"] for name in ("Rate", "Burst"))
    assert (parameters["RequestRate"]["Default"] + users) * 0.5 <= 1_000
    # In some regions, an account's default burst limit is not higher.
    assert parameters["RequestBurst"]["Default"] + burst <= 1_250
    # Anyone on the internet can send requests to this API, and each of them costs money.
    assert (users, burst) == (100, 200)
    settings = resources["UsersApiStage"]["Properties"]["DefaultRouteSettings"]
    assert settings == {"ThrottlingRateLimit": {"Ref": "UsersRequestRate"}, "ThrottlingBurstLimit": {"Ref": "UsersRequestBurst"}}


def test_sandboxes_are_reserved_only_where_the_operator_says_so(template, resources):
    conditions = template["Conditions"]
    for function in ["Tracking", "Indexer"]:
        parameter = template["Parameters"][f"{function}Concurrency"]
        assert (parameter["Default"], parameter["MinValue"]) == (0, 0)
        reserved = resources[f"{function}Function"]["Properties"]["ReservedConcurrentExecutions"]
        condition = f"Has{function}Concurrency"
        assert reserved == {"Fn::If": [condition, {"Ref": f"{function}Concurrency"}, {"Ref": "AWS::NoValue"}]}
        assert conditions[condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": f"{function}Concurrency"}, 0]}]}
    limited = {name for name, one in of_type(resources, "AWS::Lambda::Function").items() if "ReservedConcurrentExecutions" in one["Properties"]}
    assert limited == {"TrackingFunction", "IndexerFunction"}


def test_data_outlives_the_stack_but_not_one_that_could_not_be_made(template, resources):
    for name in ["Table", "AccessTable", "ArtifactBucket", "ArtifactBucketPolicy"]:
        assert (resources[name]["DeletionPolicy"], resources[name]["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    # CloudFormation cannot delete a protected table while it rolls back. `make deploy` enables
    # protection once the stack exists.
    assert template["Parameters"]["DeletionProtection"]["Default"] == "false"
    for name in ["Table", "AccessTable"]:
        assert resources[name]["Properties"]["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    config = tomllib.loads((REPOSITORY / "samconfig.toml").read_text())
    for environment in (config[name] for name in config if name != "version"):
        # A stack whose first deployment has failed cannot be updated.
        assert environment["deploy"]["parameters"]["on_failure"] == "DELETE"
        # Set on the command line when the stack is created.
        assert not re.search(r"\bUsers\b", str(environment["deploy"]["parameters"].get("parameter_overrides", "")))


def test_a_stack_goes_on_with_tables_that_are_there(template, resources):
    for of in ["Table", "AccessTable"]:
        assert resources[of]["Condition"] == f"HasOwn{of}"
        assert template["Conditions"][f"HasOwn{of}"] == {"Fn::Equals": [{"Ref": f"Existing{of}"}, ""]}
        named = {"Fn::If": [f"HasOwn{of}", {"Ref": of}, {"Ref": f"Existing{of}"}]}
        assert template["Outputs"][f"{of}Name"]["Value"] == named
        variable = {"Table": "TABLE_NAME", "AccessTable": "ACCESS_TABLE_NAME"}[of]
        for name, function in of_type(resources, "AWS::Lambda::Function").items():
            assert function["Properties"]["Environment"]["Variables"].get(variable, named) == named, name
    [stream] = template["Rules"]["AnExistingTableHasAStream"]["Assertions"]
    assert stream["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "ExistingTableStream"}, ""]}]}


def test_files_go_past_the_api_where_clients_can_do_that(template, resources):
    assert template["Parameters"]["PresignedOnly"]["Default"] == "true"
    variables = resources["TrackingFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["ARTIFACTS_PRESIGNED_ONLY"] == {"Fn::If": ["SendsByUrls", "true", "false"]}
    # Presigned uploads are off if their size must be limited, and if clients have their own
    # permissions, so that they need no URLs.
    equal = [{"Fn::Equals": [{"Ref": name}, value]} for name, value in
             [("PresignedOnly", "true"), ("MaxArtifactSize", ""), ("ArtifactAccess", "server")]]
    assert template["Conditions"]["SendsByUrls"] == {"Fn::And": equal}


def test_the_bucket_is_closed_but_to_pages_of_the_interface(resources):
    bucket = resources["ArtifactBucket"]["Properties"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    [encryption] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    nothing = {"Ref": "AWS::NoValue"}
    assert encryption == {
        "ServerSideEncryptionByDefault": {
            "SSEAlgorithm": {"Fn::If": ["HasBucketKey", "aws:kms", "AES256"]},
            "KMSMasterKeyID": {"Fn::If": ["HasBucketKey", {"Ref": "BucketKey"}, nothing]},
        },
        "BucketKeyEnabled": {"Fn::If": ["HasBucketKey", True, nothing]},
    }
    [rule] = bucket["CorsConfiguration"]["CorsRules"]
    signed, users = ({"Fn::GetAtt": [api, "ApiEndpoint"]} for api in ("Api", "UsersApi"))
    names = [{"Fn::If": [f"Has{of}", {"Fn::Sub": f"https://${{{of}Name}}"}, nothing]} for of in ("Domain", "UsersDomain")]
    assert rule["AllowedOrigins"] == [signed, {"Fn::If": ["HasUsersApi", users, nothing]}, *names]
    assert rule["AllowedMethods"] == ["GET", "PUT"]
    # Required by pages of MLflow 3.18 to complete multipart uploads.
    assert rule["ExposedHeaders"] == ["ETag"]
    lifecycle, of_answers, of_archive = bucket["LifecycleConfiguration"]["Rules"]
    assert lifecycle["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert lifecycle["ExpiredObjectDeleteMarker"] is True
    # S3 refuses a rule with both.
    assert not {"ExpirationInDays", "ExpirationDate"} & lifecycle.keys()
    assert (of_answers["Prefix"], of_answers["ExpirationInDays"]) == (".answers/", 1)
    assert "ExpiredObjectDeleteMarker" not in of_answers
    # Archived data is deleted only by the housekeeper.
    assert of_archive["Prefix"] == ".archive/" and "ExpirationInDays" not in of_archive


def test_a_bucket_of_ones_own_is_named_so_that_policies_and_certificates_fit(template):
    pattern = template["Parameters"]["ArtifactRoot"]["AllowedPattern"]
    for root in ["", "s3://bucket", "s3://my-bucket-1/mlflow", "s3://bucket/a/b.c/d e"]:
        assert re.search(pattern, root), root
    for root in [
        "bucket", "s3://", "s3://b", "s3://my.bucket/x", "s3://Bucket/x", "s3://bucket/", "s3://bucket/x/", "s3://bucket//x",
        "s3://bucket/x*", "s3://bucket/*/x", "s3://bucket/${aws:username}", "s3://bucket/x?", "s3://bucket/x#y", "s3://bucket*/x",
    ]:
        assert not re.search(pattern, root), root


def test_clients_need_no_rights_to_the_bucket_unless_the_operator_says_so(template, resources):
    assert template["Parameters"]["ArtifactAccess"]["Default"] == "server"
    for name in ["TrackingFunction", "RegistryFunction", "TracesFunction", "ArtifactsFunction", "GraphqlFunction"]:
        variables = resources[name]["Properties"]["Environment"]["Variables"]
        condition, _, served = variables["ARTIFACT_ROOT"]["Fn::If"]
        assert (condition, served) == ("IsDirect", "mlflow-artifacts:/")
        assert variables["ARTIFACTS_DESTINATION"]["Fn::If"][2] == {"Ref": "ArtifactRoot"}


def test_uploads_have_no_limit_unless_the_operator_sets_one(template, resources):
    parameter = template["Parameters"]["MaxArtifactSize"]
    assert parameter["Default"] == ""
    for size in ["", "1", "10485760", "5497558138880"]:
        assert re.search(parameter["AllowedPattern"], size), size
    for size in ["0", "-1", "1.5", "1e6", "10 MB", "1000000000000000"]:
        assert not re.search(parameter["AllowedPattern"], size), size
    variables = resources["ArtifactsFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["MAX_ARTIFACT_SIZE"] == {"Ref": "MaxArtifactSize"}
    assert '"MAX_ARTIFACT_SIZE";' in (REPOSITORY / "shared/http/domain/src/environment.rs").read_text()


#: The tag by which costs are attributed to the stack.
TAG = {"mlflow-stack": {"Ref": "AWS::StackName"}}


def test_the_gateway_refuses_what_it_does_not_understand_and_bears_the_tag_of_the_stack(resources):
    """Checks the tags in the API's body, because CloudFormation does not apply stack tags to an API
    with a body.
    """
    for api in ("Api", "UsersApi"):
        properties = resources[api]["Properties"]
        assert properties["FailOnWarnings"] is True
        assert {one["name"]: one["x-amazon-apigateway-tag-value"] for one in properties["Body"]["tags"]} == TAG
        # CloudFormation refuses other properties next to a body.
        assert properties.keys() == {"Body", "FailOnWarnings"}
        assert resources[f"{api}Stage"]["Properties"]["Tags"] == TAG


#: Types to which CloudFormation applies the tags of the stack (samconfig.toml).
TAGGED_BY_THE_STACK = {
    "AWS::ApiGatewayV2::DomainName", "AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::Events::Rule", "AWS::IAM::ManagedPolicy", "AWS::IAM::Role",
    "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SQS::Queue",
}
#: Types that cannot have tags. Of these, only a dashboard costs anything.
WITHOUT_TAGS = {
    "AWS::ApiGatewayV2::ApiMapping", "AWS::CloudWatch::Dashboard", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::LayerVersion", "AWS::Lambda::Permission",
    "AWS::Logs::MetricFilter", "AWS::Route53::RecordSet", "AWS::S3::BucketPolicy",
}


def test_everything_that_costs_money_bears_the_tag_of_the_stack(resources):
    own = {"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"}
    assert {resource["Type"] for resource in resources.values()} == TAGGED_BY_THE_STACK | WITHOUT_TAGS | own
    for name, resource in resources.items():
        tags = resource["Properties"].get("Tags")
        if resource["Type"] in TAGGED_BY_THE_STACK:
            # SAM adds its own tag to functions. The tag of the stack must not be overridden.
            assert not tags or {one["Key"] for one in tags} == {"lambda:createdBy"}, name


def test_roles_have_the_path_and_the_boundary_of_the_company(template, resources):
    for name, role in of_type(resources, "AWS::IAM::Role").items():
        assert role["Properties"]["Path"] == {"Ref": "RolePath"}, name
        assert role["Properties"]["PermissionsBoundary"] == {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundary"}, {"Ref": "AWS::NoValue"}]}, name
    assert (template["Parameters"]["RolePath"]["Default"], template["Parameters"]["PermissionsBoundary"]["Default"]) == ("/", "")
    assert resources["ClientPolicy"]["Properties"]["Path"] == {"Ref": "RolePath"}
    pattern = template["Parameters"]["RolePath"]["AllowedPattern"]
    assert all(re.fullmatch(pattern, path) for path in ("/", "/mlflow/", "/a/b-c/"))
    assert not any(re.fullmatch(pattern, path) for path in ("", "mlflow", "/mlflow", "//", "/a b/"))


def test_logs_and_backups_are_kept_as_long_as_the_operator_says(template, resources):
    # One of each function, and one of both APIs.
    groups = of_type(resources, "AWS::Logs::LogGroup").values()
    assert len(groups) == len(of_type(resources, "AWS::Lambda::Function")) + 1
    assert all(group["Properties"]["RetentionInDays"] == {"Ref": "LogRetention"} for group in groups)
    for name in ("Table", "AccessTable"):
        recovery = resources[name]["Properties"]["PointInTimeRecoverySpecification"]
        assert recovery == {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": {"Ref": "RecoveryPeriodInDays"}}
    parameters = template["Parameters"]
    assert (parameters["LogRetention"]["Default"], parameters["RecoveryPeriodInDays"]["Default"]) == (30, 35)
    assert (parameters["RecoveryPeriodInDays"]["MinValue"], parameters["RecoveryPeriodInDays"]["MaxValue"]) == (1, 35)


def test_both_apis_log_what_they_refuse_if_the_operator_says_so(template, resources):
    assert template["Parameters"]["AccessLogs"]["Default"] == "off"
    group = resources["AccessLog"]
    # The account's policy for log delivery has one statement for all groups below this name.
    assert group["Properties"]["LogGroupName"]["Fn::Sub"].startswith("/aws/vendedlogs/")
    assert group["Condition"] == "HasAccessLogs"
    for stage in ("ApiStage", "UsersApiStage"):
        condition, settings, otherwise = resources[stage]["Properties"]["AccessLogSettings"]["Fn::If"]
        assert (condition, otherwise) == ("HasAccessLogs", {"Ref": "AWS::NoValue"})
        # The ARN of a group ends with `:*`, which API Gateway does not accept.
        assert settings["DestinationArn"]["Fn::Sub"].endswith(":log-group:${AccessLog}")
        line = json.loads(settings["Format"])
        assert {"$context.status", "$context.error.message", "$context.identity.sourceIp", "$context.identity.userArn"} <= set(line.values())


def test_traces_are_sent_to_x_ray_if_the_operator_says_so(template, resources):
    assert template["Parameters"]["Tracing"]["Default"] == "off"
    for name, function in of_type(resources, "AWS::Lambda::Function").items():
        assert function["Properties"]["TracingConfig"] == {"Mode": {"Fn::If": ["IsTraced", "Active", "PassThrough"]}}, name
        [policy] = resources[f"{name}Role"]["Properties"]["Policies"]
        [(there, otherwise)] = [
            statement["Fn::If"][1:] for statement in policy["PolicyDocument"]["Statement"] if statement.get("Fn::If", [""])[0] == "IsTraced"
        ]
        assert actions(there["Action"]) == {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
        assert (there["Effect"], otherwise) == ("Allow", {"Ref": "AWS::NoValue"})


def test_an_api_is_closed_to_all_but_its_own_name_if_the_operator_says_so(template, resources):
    assert template["Parameters"]["DisableExecuteApiEndpoint"]["Default"] == "false"
    for api in ("Api", "UsersApi"):
        # In OpenAPI 3, this is an extension of a server.
        condition, (server,), otherwise = resources[api]["Properties"]["Body"]["servers"]["Fn::If"]
        assert (condition, otherwise) == ("IsOnlyAtDomains", {"Ref": "AWS::NoValue"})
        assert server["x-amazon-apigateway-endpoint-configuration"] == {"disableExecuteApiEndpoint": True}
    for output, api, name in (("TrackingUri", "Api", "DomainName"), ("UsersUri", "UsersApi", "UsersDomainName")):
        closed, open_ = {"Fn::Sub": f"https://${{{name}}}"}, {"Fn::GetAtt": [api, "ApiEndpoint"]}
        assert template["Outputs"][output]["Value"] == {"Fn::If": ["IsOnlyAtDomains", closed, open_]}


def test_the_data_table_has_the_class_and_the_warm_throughput_that_the_operator_says(template, resources):
    table = resources["Table"]["Properties"]
    assert table["TableClass"] == {"Ref": "TableClass"}
    units = {"ReadUnitsPerSecond": {"Ref": "WarmReadUnits"}, "WriteUnitsPerSecond": {"Ref": "WarmWriteUnits"}}
    assert table["WarmThroughput"] == {"Fn::If": ["HasWarmThroughput", units, {"Ref": "AWS::NoValue"}]}
    # Users and their roles are small and read with each request.
    assert not {"TableClass", "WarmThroughput"} & resources["AccessTable"]["Properties"].keys()
    assert template["Parameters"]["TableClass"]["Default"] == "STANDARD"
    for name, least in (("WarmReadUnits", 12000), ("WarmWriteUnits", 4000)):
        pattern = template["Parameters"][name]["AllowedPattern"]
        assert all(re.fullmatch(pattern, str(units)) for units in (0, least, least + 1, 10 * least, 99999))
        assert not any(re.fullmatch(pattern, text) for text in ("", "1", str(least - 1), f"0{least}", f"-{least}"))


def test_a_policy_for_clients_allows_what_the_guide_says(template, resources):
    [policy] = of_type(resources, "AWS::IAM::ManagedPolicy").values()
    invoke, *files = policy["Properties"]["PolicyDocument"]["Statement"]
    api = {"Fn::Sub": "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*"}
    assert invoke == {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": api}
    # Clients without permissions of their own for the bucket get none.
    assert [statement["Fn::If"][0::2] for statement in files] == [["IsDirect", {"Ref": "AWS::NoValue"}]] * 3
    lists, changes, _ = (statement["Fn::If"][1] for statement in files)
    assert (actions(lists["Action"]), lists["Resource"]) == LISTS_FILES
    assert (actions(changes["Action"]), changes["Resource"]) == ({"s3:DeleteObject", "s3:GetObject", "s3:PutObject"}, FILES)
    outputs = {name: output["Value"] for name, output in template["Outputs"].items()}
    assert (outputs["ApiResource"], outputs["ClientPolicyArn"], outputs["Region"]) == (api, {"Ref": "ClientPolicy"}, {"Ref": "AWS::Region"})


def test_each_parameter_has_a_label_in_a_group(template):
    """Checks the labels and groups of parameters. CloudFormation's console shows parameters without
    a group in one long list.
    """
    interface = template["Metadata"]["AWS::CloudFormation::Interface"]
    grouped = [name for group in interface["ParameterGroups"] for name in group["Parameters"]]
    assert sorted(grouped) == sorted(template["Parameters"])
    assert interface["ParameterLabels"].keys() == template["Parameters"].keys()
    labels = [label["default"] for label in interface["ParameterLabels"].values()]
    assert len(set(labels)) == len(labels)
    assert all(group["Label"]["default"] for group in interface["ParameterGroups"])
