"""Creates or updates the stack:
`python tools/deploy [--environment dev] [--parameters NAME=VALUE ...]`.

Run by `make deploy`, `make admin` and `make delete`. Before anything is built or changed, it checks whether the deployment can
succeed, and explains how to fix what would prevent it. It refuses changes that would lose data or
URLs. Its only dependency besides SAM is boto3, which comes with SAM.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import administrator
import advice
import budget
import layout
import preflight
from changes import refused
from first_call import make_first_calls
from settings import Settings, read_settings
from stack import Stack


def main() -> None:
    # Python programs read AWS_DEFAULT_REGION, all others AWS_REGION.
    if os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = os.environ["AWS_REGION"]
    said = _arguments()
    settings = read_settings(said)
    try:
        if said.admin or said.delete:
            if not settings.region:
                sys.exit(preflight.NO_REGION)
            stack = Stack(boto3.client("cloudformation"), settings.stack)
            if said.admin:
                print(_administrator(settings, stack, said.admin, said.tracking_uri))
            else:
                _delete(settings, stack, said.delete)
            return
        problems = preflight.find_problems(settings)
        if problems:
            sys.exit("Nothing was changed. Before the stack can be deployed:\n\n" + "\n".join(f"- {problem}" for problem in problems))
        for warning in preflight.find_warnings(settings):
            print(f"Note: {warning}")
        _deploy(settings, Stack(boto3.client("cloudformation"), settings.stack))
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"AWS: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:3]))} exited with status {error.returncode}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy", description="Creates or updates the stack.")
    parser.add_argument("--environment", default="default", help="section of samconfig.toml: default, dev or prod")
    parser.add_argument("--parameters", nargs="*", default=[], metavar="NAME=VALUE", help="parameters of the template, or MonthlyBudget and BudgetEmail; all others keep their values")
    parser.add_argument("--allow", nargs="*", default=[], metavar="RESOURCE", help="resources that may be replaced or removed")
    parser.add_argument("--role-arn", metavar="ARN", help="role that CloudFormation assumes to create the resources, instead of using your permissions")
    parser.add_argument("--built", action="store_true", help="use the functions and the user interface at the paths in the template, without building them")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--check", action="store_true", help="only check whether the stack can be deployed")
    instead.add_argument("--admin", metavar="NAME", help="only create an administrator of the deployed stack; prompts for the password, or reads it from standard input")
    instead.add_argument("--delete", metavar="STACK", help="only delete the stack and its budget, but not its tables and its bucket; repeat the stack's name to confirm")
    parser.add_argument("--tracking-uri", metavar="URL", help="with --admin: URL to use instead of the output TrackingUri, such as a custom domain")
    return parser.parse_args()


def _deploy(settings: Settings, stack: Stack) -> None:
    dynamodb = boto3.client("dynamodb")
    table = settings.parameters.get("ExistingTable") or (stack.outputs().get("TableName") if stack.exists() else None)
    if table and (problem := layout.problem(dynamodb, table)):
        sys.exit(f"Nothing was changed. {problem}")
    if settings.only_checks:
        print("The stack can be deployed.")
        return
    if not settings.is_built:
        subprocess.run(["rustup", "target", "add", preflight.TARGET], check=True)
        _sam("build", "--config-env", settings.environment)
    # The template of earlier versions contained the budget, and had parameters for it.
    wanted = settings.budget.or_kept(stack.parameters() if stack.exists() else {})
    command = ["deploy", "--config-env", settings.environment, *settings.as_arguments(is_new=not stack.exists())]
    if stack.exists():
        said = _sam(*command, "--no-execute-changeset", "--no-confirm-changeset")
        change_set = stack.change_set_in(said)
        if change_set:
            found = refused(stack.changes(change_set), set(settings.allowed), settings.command("ALLOW"))
            if found:
                stack.drop(change_set)
                sys.exit("Nothing was changed. This deployment would lose data or change the URL of clients:\n\n" + "\n".join(f"- {one}" for one in found))
            stack.execute(change_set)
    else:
        _sam(*command)
    if settings.protects and stack.parameter("DeletionProtection") == "false" and stack.has_tables():
        stack.protect()
    failed = list(make_first_calls(stack))
    for one in failed:
        print(f"Note: {one}")
    if failed:
        print(f"Check the logs of these functions, and run: mlflow-serverless doctor --stack {stack.name}")
    if wanted.is_given and (said := budget.Budget(_account(), stack.name, settings.region).settle(wanted, stack.tag(budget.TAG))):
        print(said)
    outputs = stack.outputs()
    print(advice.of(outputs, settings, dynamodb.meta))
    if told := layout.advice(dynamodb, outputs["TableName"], advice.migration(outputs, dynamodb.meta.endpoint_url)):
        print(told)


def _account() -> str:
    return boto3.client("sts").get_caller_identity()["Account"]


def _administrator(settings: Settings, stack: Stack, name: str, uri: str | None) -> str:
    if not stack.exists():
        sys.exit(f"There is no stack {stack.name} in {settings.region}.")
    outputs = stack.outputs()
    if "UsersUri" not in outputs:
        sys.exit(f"The stack has no API for users: {settings.command('PARAMETERS')}Users=on")
    try:
        made = administrator.make_administrator(administrator.Api(uri or outputs["TrackingUri"], settings.region), name)
    except administrator.Refused as why:
        sys.exit(f"{name} is not an administrator: {why}")
    return f"{made} Sign in at {outputs['UsersUri']}/"


def _delete(settings: Settings, stack: Stack, confirmed: str) -> None:
    """Deletes the stack and its budget. Its data is not part of the deletion."""
    if confirmed != stack.name:
        sys.exit(f"Nothing was deleted: the stack of this environment is {stack.name}, not {confirmed}.")
    if said := budget.Budget(_account(), stack.name, settings.region).remove():
        print(said)
    if not stack.exists():
        print(f"There is no stack {stack.name} in {settings.region}.")
        return
    outputs = stack.outputs()
    print(f"Deleting the stack {stack.name} ...", flush=True)
    if not stack.delete():
        sys.exit(preflight.problem_of_state(stack.name) or f"{stack.name} was not deleted.")
    print(f"Deleted the stack {stack.name}.{advice.of_data(outputs)}")


def _sam(*arguments: str) -> str:
    """Runs SAM, and returns its output, which is also printed."""
    command = [Path(sys.executable).with_name("sam"), *arguments]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return "".join(said)


if __name__ == "__main__":
    main()
