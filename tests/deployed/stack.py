"""Creates and deletes the stack of the committed template.yaml and samconfig.toml, with `sam
deploy` and `sam delete`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers import binary

from .emulator import ACCOUNT, REGION, REPOSITORY, Emulator
from .processed import HttpApi, Processed, read_api

SAM = Path(sys.executable).with_name("sam")
_FUNCTIONS = [crate.parent.name for crate in sorted(REPOSITORY.glob("functions/*/Cargo.toml"))]

#: Stack that SAM creates for the code of all stacks of an account, and never deletes.
OF_SAM = "aws-sam-cli-managed-default"


def lay_out(directory: Path, ui: Path) -> Path:
    """Prepares a directory for `sam deploy`: the committed template and settings, and development
    builds in place of the functions' code.

    The programs are packed as archives once for all deployments. SAM uploads archives without
    building them.
    """
    for name in ("template.yaml", "samconfig.toml"):
        shutil.copyfile(REPOSITORY / name, directory / name)
    (directory / "functions").mkdir()
    for name in _FUNCTIONS:
        _pack(REPOSITORY / "target/debug" / name, directory / "functions" / name)
    with zipfile.ZipFile(directory / "ui", "w") as zipped:
        for path in sorted(ui.rglob("*")):
            zipped.write(path, Path("build") / path.relative_to(ui))
    return directory


def unpack(archive: Path, directory: Path) -> Path:
    """Unpacks an archive of a release. Links the environment of the tests, so that nothing has to
    be installed.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    [project] = directory.iterdir()
    (project / ".venv").symlink_to(REPOSITORY / ".venv")
    return project


def _pack(program: Path, archive: Path) -> None:
    if not program.is_file():
        raise FileNotFoundError(f"{program} is missing: build it")
    bootstrap = archive.with_suffix(".bootstrap")
    # Removes debug information, which is two thirds of the program.
    subprocess.run(["strip", "-o", bootstrap, program], check=True)
    # Optimized for speed, not size.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        zipped.write(bootstrap, "bootstrap")
    bootstrap.unlink()


def run_sam(emulator: Emulator, directory: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    """Runs SAM as the operator. SAM reads the region from the variable's older name."""
    process = subprocess.run(
        [str(SAM), *arguments], cwd=directory, env=emulator.operator | {"AWS_DEFAULT_REGION": REGION}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
    )
    if check and process.returncode:
        raise AssertionError(f"sam {' '.join(arguments)} exited with {process.returncode}:\n{process.stdout[-6000:]}\n{process.stderr[-2000:]}")
    return process


@dataclass(frozen=True)
class Stack:
    """A deployed stack."""

    emulator: Emulator
    name: str

    @property
    def outputs(self) -> dict[str, str]:
        [stack] = self.emulator.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    @property
    def parameters(self) -> dict[str, str]:
        [stack] = self.emulator.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack["Parameters"]}

    def resources(self, kind: str | None = None) -> dict[str, str]:
        """Returns the physical ids of resources by their names in the template."""
        found = self.emulator.cloudformation.describe_stack_resources(StackName=self.name)["StackResources"]
        return {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in found if kind in (None, one["ResourceType"])}

    def apis(self, **others: str) -> dict[str, HttpApi]:
        """Returns the stack's APIs by their names in the template, optionally with other
        parameters. Evaluates the template, because the emulator does not process the APIs' bodies.
        """
        template = self.emulator.cloudformation.get_template(StackName=self.name, TemplateStage="Processed")["TemplateBody"]
        processed = Processed(template if isinstance(template, Mapping) else json.loads(template), {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::StackName": self.name,
            **self.parameters,
            **others,
        })
        return {name: read_api(processed, name, id_) for name, id_ in self.resources("AWS::ApiGatewayV2::Api").items()}

    def roles(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the statements of each function's role."""
        iam, found = self.emulator.iam, {}
        for function in _FUNCTIONS:
            name = f"{self.name}-{function}"
            role = self.emulator.functions.get_function_configuration(FunctionName=name)["Role"].rpartition("/")[2]
            assert iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"] == []
            policies = iam.list_role_policies(RoleName=role)["PolicyNames"]
            documents = [iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"] for policy in policies]
            found[name] = [statement for document in documents for statement in document["Statement"]]
        return found


def deploy(emulator: Emulator, directory: Path, name: str, **parameters: str) -> Stack:
    """Deploys a stack with SAM, like an operator."""
    overrides = ["--parameter-overrides", *(f"{key}={value}" for key, value in parameters.items())] if parameters else []
    run_sam(emulator, directory, "deploy", "--stack-name", name, *overrides)
    return Stack(emulator, name)


def restore_by_command(emulator: Emulator, directory: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Restores tables like `make restore`, with a program that is already built."""
    command = [sys.executable, str(REPOSITORY / "tools/restore"), "--program", str(binary()), *arguments]
    return subprocess.run(
        command, cwd=directory, env=emulator.operator, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
    )


def deploy_by_command(emulator: Emulator, directory: Path, *arguments: str, sent: str = "", **variables: str) -> subprocess.CompletedProcess:
    """Deploys like `make deploy`, with functions that are already built. `sent` is the command's
    standard input, and `variables` replace those of the operator's environment.
    """
    command, environment = [sys.executable, str(REPOSITORY / "tools/deploy"), "--built", *arguments], emulator.operator | variables
    if (directory / "deploy").is_file():
        # An archive has its own command. It must not need Rust.
        command, environment = [str(directory / "deploy"), *arguments], environment | {"PATH": "/usr/bin:/bin"}
        assert not any(shutil.which(tool, path=environment["PATH"]) for tool in ("cargo", "rustc", "rustup"))
    return subprocess.run(command, cwd=directory, env=environment, input=sent, capture_output=True, text=True, timeout=900)


@dataclass(frozen=True)
class Failed:
    """A failed first deployment: the events of its resources, and the resources that are left."""

    resource: str
    status: int
    events: set[tuple[str, str]]
    left: set[str]


def fail(emulator: Emulator, directory: Path, name: str, resource: str, *arguments: str) -> Failed:
    """Deploys like `make deploy`, with a resource that cannot be created."""
    before = everything(emulator)
    with emulator.failing(name, resource):
        done = deploy_by_command(emulator, directory, *arguments)
    stacks = emulator.cloudformation.list_stacks()["StackSummaries"]
    tried = max((one for one in stacks if one["StackName"] == name), key=lambda one: one["CreationTime"])
    pages = emulator.cloudformation.get_paginator("describe_stack_events").paginate(StackName=tried["StackId"])
    happened = {(one["LogicalResourceId"], one["ResourceStatus"]) for page in pages for one in page["StackEvents"]}
    left = {thing for thing in everything(emulator) - before if OF_SAM not in thing}
    return Failed(resource, done.returncode, happened, left)


def delete(stack: Stack, directory: Path) -> None:
    """Deletes a stack, and then the log groups that invocations in flight have created again meanwhile."""
    began = time.time()
    run_sam(stack.emulator, directory, "delete", "--stack-name", stack.name, "--no-prompts", "--region", REGION)
    logs = stack.emulator.client("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        if group["creationTime"] / 1000 >= began:
            logs.delete_log_group(logGroupName=group["logGroupName"])


def everything(emulator: Emulator) -> set[str]:
    """Returns everything in the account, of the kinds that a stack contains."""
    logs, events, api = (emulator.client(service) for service in ("logs", "events", "apigatewayv2"))
    sqs, watch, route53 = emulator.client("sqs"), emulator.client("cloudwatch"), emulator.client("route53")
    budgets = emulator.client("budgets").describe_budgets(AccountId=ACCOUNT).get("Budgets", [])
    zones = [one["Id"] for one in route53.list_hosted_zones()["HostedZones"]]
    records = [one for zone in zones for one in route53.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]]
    stacks = emulator.cloudformation.describe_stacks()["Stacks"]
    return {
        *(f"stack {one['StackName']}" for one in stacks if one["StackStatus"] != "DELETE_COMPLETE"),
        *(f"table {name}" for name in emulator.dynamodb.list_tables()["TableNames"]),
        *(f"bucket {one['Name']}" for one in emulator.s3.list_buckets()["Buckets"]),
        *(f"function {one['FunctionName']}" for one in emulator.functions.list_functions()["Functions"]),
        *(f"layer {one['LayerName']}" for one in emulator.functions.list_layers()["Layers"]),
        *(f"mapping {one['UUID']}" for one in emulator.functions.list_event_source_mappings()["EventSourceMappings"]),
        *(f"role {one['RoleName']}" for one in emulator.iam.list_roles()["Roles"]),
        *(f"log group {one['logGroupName']}" for one in logs.describe_log_groups()["logGroups"]),
        *(f"metric filter {one['filterName']}" for one in logs.describe_metric_filters()["metricFilters"]),
        *(f"rule {one['Name']}" for one in events.list_rules()["Rules"]),
        *(f"api {one['ApiId']}" for one in api.get_apis()["Items"]),
        *(f"domain {one['DomainName']}" for one in api.get_domain_names()["Items"]),
        *(f"record {one['Name']}" for one in records if one["Type"] == "A"),
        *(f"budget {one['BudgetName']}" for one in budgets),
        *(f"queue {url}" for url in sqs.list_queues().get("QueueUrls", [])),
        *(f"alarm {one['AlarmName']}" for one in watch.describe_alarms()["MetricAlarms"]),
    }


def kinds(things: set[str]) -> dict[str, int]:
    """Returns the number of resources of each kind."""
    names = [re.match(r"[a-z ]+?(?= \S+$)", thing)[0] for thing in things]
    return {name: names.count(name) for name in sorted(set(names))}
