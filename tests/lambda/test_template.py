"""What template.yaml deploys, after SAM has expanded it. `make validate` checks that it is valid."""

import copy
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
    """The resources that CloudFormation gets to see."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    built = copy.deepcopy(template)
    for function in of_type(built["Resources"], "AWS::Serverless::Function").values():
        function["Properties"]["CodeUri"] = {"Bucket": "any", "Key": "any"}
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


def test_watch_routes_to_each_crate_in_functions():
    router = manifest(REPOSITORY)["workspace"]["metadata"]["lambda"]["watch"]["router"]
    crates = {manifest(crate.parent)["package"]["name"] for crate in REPOSITORY.glob("functions/*/Cargo.toml")}
    assert set(router.values()) == crates
    # A catch-all matches no empty path, and in the syntax without braces it matches only itself.
    assert {"/", "/{*path}"} <= router.keys()


def test_each_path_reaches_a_function(resources):
    routes = {route["Properties"]["RouteKey"]: route for route in of_type(resources, "AWS::ApiGatewayV2::Route").values()}
    assert "$default" in routes
    for route in routes.values():
        integration = resources[route["Properties"]["Target"]["Fn::Sub"].removeprefix("integrations/${").rstrip("}")]
        function, _ = integration["Properties"]["IntegrationUri"]["Fn::GetAtt"]
        assert resources[function]["Type"] == "AWS::Lambda::Function"


def test_each_route_asks_who_is_calling(template, resources):
    for route in of_type(resources, "AWS::ApiGatewayV2::Route").values():
        assert route["Properties"]["AuthorizationType"] == {"Ref": "Authorization"}
    assert template["Parameters"]["Authorization"]["Default"] == "AWS_IAM"


def test_functions_may_do_only_named_things_to_the_table_and_its_indexes(resources):
    for role in of_type(resources, "AWS::IAM::Role").values():
        for policy in role["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                assert not any("*" in action or action.endswith(":Scan") for action in statement["Action"])
                assert statement["Resource"] == [{"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::Sub": "${Table.Arn}/index/*"}]


def test_data_outlives_the_stack(resources):
    for name in ["Table", "ArtifactBucket", "ArtifactBucketPolicy"]:
        assert resources[name]["DeletionPolicy"] == resources[name]["UpdateReplacePolicy"] == "Retain"
