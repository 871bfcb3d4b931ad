"""Creates or updates the stack:
`python tools/deploy [--environment dev] [--parameters NAME=VALUE ...]`.

Run by `make deploy`. Before anything is built or changed, it checks whether the deployment can
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

import advice
import budget
import layout
import preflight
from changes import refused
from first_call import make_first_call
from settings import Settings, read_settings
from stack import Stack


def main() -> None:
    # Python programs read AWS_DEFAULT_REGION, all others AWS_REGION.
    if os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = os.environ["AWS_REGION"]
    settings = read_settings(_arguments())
    try:
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
    parser.add_argument("--built", action="store_true", help="use the functions and the user interface at the paths in the template, without building them")
    parser.add_argument("--check", action="store_true", help="only check whether the stack can be deployed")
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
    if said := make_first_call(boto3.client("lambda"), stack):
        print(f"Note: the first call of the function tracking failed: {said}. Check its log, and run: mlflow-serverless doctor --stack {stack.name}")
    if wanted.is_given and (said := budget.Budget(_account(), stack.name, settings.region).settle(wanted, stack.tag(budget.TAG))):
        print(said)
    outputs = stack.outputs()
    print(advice.of(outputs, stack.name, settings.region, settings.command("PARAMETERS")))
    if told := layout.advice(dynamodb, outputs["TableName"], advice.migration(outputs, settings.region)):
        print(told)


def _account() -> str:
    return boto3.client("sts").get_caller_identity()["Account"]


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
