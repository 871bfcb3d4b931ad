"""Finds problems that would make a deployment fail, before anything is built or changed."""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import budget
import data
import names
import states
from asked import unless_denied
from settings import Settings
from stack import Stack
from template import read_template, refused

#: Functions are named `<stack>-<function>`, and a name has at most 64 characters.
_LONGEST_STACK_NAME = 52
#: Number of an account's concurrent executions that AWS keeps unreserved.
_UNRESERVED = 100
_CONCURRENCY = ("TrackingConcurrency", "IndexerConcurrency")
#: Processor of the functions.
TARGET = "aarch64-unknown-linux-gnu"
NO_REGION = "No region is set: export AWS_REGION=eu-central-1, or set one in the AWS profile (aws configure set region eu-central-1)."


def find_problems(settings: Settings) -> list[str]:
    """Returns what has to be fixed before the deployment can begin."""
    return [*_of_this_machine(settings), *_of_the_account(settings)]


def _of_parameters(settings: Settings, state: str | None, account: str) -> Iterator[str]:
    """Checks each parameter, their combination, and what they refer to."""
    stack = Stack(boto3.client("cloudformation"), settings.stack)
    has_been_made = state not in (None, "REVIEW_IN_PROGRESS")
    kept = stack.parameters() if has_been_made else {}
    said = settings.of_new_stack() if not has_been_made else settings.parameters
    template = read_template()
    wrong = list(refused(template, said, kept))
    yield from wrong
    if wrong:
        return
    all_of_them = {**kept, **said}
    yield from names.find_problems(all_of_them, settings.region, stack.resources() if has_been_made else {})
    # Parameters that the stack keeps have been checked by CloudFormation.
    yield from data.find_problems(said, settings.region, template)
    yield from _of_sandboxes(said, kept)
    yield from budget.find_problems(settings.budget, settings.stack, settings.region, account, kept)


def _of_sandboxes(said: Mapping[str, str], kept: Mapping[str, str]) -> Iterator[str]:
    """Checks the reserved concurrency. What the stack has reserved at present can be reused."""
    before = sum(int(kept.get(name, 0)) for name in _CONCURRENCY)
    wanted = sum(int({**kept, **said}.get(name, 0)) for name in _CONCURRENCY)
    if wanted <= before:
        return
    with unless_denied("whether enough concurrent executions are left to reserve"):
        limit = boto3.client("lambda").get_account_settings()["AccountLimit"]
        free = limit.get("UnreservedConcurrentExecutions", limit["ConcurrentExecutions"]) + before
        if free - wanted < _UNRESERVED:
            yield (
                f"Cannot reserve {wanted} concurrent executions: the account has {limit['ConcurrentExecutions']}, of which {free} are not reserved by other functions, and AWS "
                f"keeps {_UNRESERVED} unreserved. Request a higher quota, or reserve fewer."
            )


def find_warnings(settings: Settings) -> Iterator[str]:
    """Yields warnings that do not prevent the deployment."""
    with unless_denied("the account's quota of concurrent executions"):
        limit = boto3.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
        if limit < 1000:
            yield (
                f"this account has {limit} concurrent executions for all its functions (new accounts start with 10). The stack reserves none, but requests beyond that "
                "are answered with 503. MLflow's clients and the scripts of the page retry them, but the page's first files and its requests for data are not retried, so with "
                "10 executions the page works for one user at a time. Request a higher quota: aws service-quotas request-service-quota-increase "
                "--service-code lambda --quota-code L-B99A9384 --desired-value 1000"
            )
    if settings.parameters.get("Authorization") == "NONE" and settings.parameters.get("AccessMode", "none") == "none":
        yield "Authorization=NONE without users allows everyone on the internet to read and delete everything."
    if settings.budget.amount is not None and not settings.budget.is_removal:
        yield (
            "MonthlyBudget only covers resources with the tag mlflow-stack, once the tag is activated for cost allocation: "
            "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status TagKey=mlflow-stack,Status=Active "
            "(AWS lists a new tag a day after the first deployment)."
        )


def _of_this_machine(settings: Settings) -> Iterator[str]:
    if len(settings.stack) > _LONGEST_STACK_NAME or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", settings.stack):
        yield f"{settings.stack} is not a valid stack name: use at most {_LONGEST_STACK_NAME} letters, digits and hyphens, and start with a letter."
    if settings.is_built:
        return
    if not shutil.which("cargo") or not shutil.which("rustup"):
        yield "Rust is missing. Install it with rustup, which can add the functions' target: https://rustup.rs"
    if not settings.only_checks and not Path("ui/build/index.html").is_file():
        yield "The user interface is missing: make ui"


def _of_the_account(settings: Settings) -> Iterator[str]:
    if not settings.region:
        yield NO_REGION
        return
    try:
        account = boto3.client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        yield f"AWS cannot identify the caller ({error}). Sign in (aws sso login), or select a profile: export AWS_PROFILE=NAME"
        return
    with unless_denied("the state of the stack, and its parameters"):
        state = _state_of(settings.stack)
        if state in (None, "REVIEW_IN_PROGRESS"):
            yield from _leftovers(settings)
        elif wrong := problem_of_state(settings.stack):
            yield wrong
            return
        yield from _of_parameters(settings, state, account)


def problem_of_state(stack: str) -> str | None:
    """Returns what to do before the stack can be updated. Returns `None` if nothing is in the
    way, or if the stack does not exist."""
    state = _state_of(stack)
    return states.problem(state, stack, _failed(stack)) if state else None


def _failed(stack: str) -> list[str]:
    with unless_denied("which resources of the stack failed"):
        return Stack(boto3.client("cloudformation"), stack).failed_resources()
    return []


def _leftovers(settings: Settings) -> Iterator[str]:
    """Finds log groups without a stack, whose names the new stack needs."""
    with unless_denied("whether log groups of an earlier stack are left over"):
        for group in boto3.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{settings.stack}/")["logGroups"]:
            name = group["logGroupName"]
            yield (
                f"The log group {name} belongs to no stack, for example because an earlier one was deleted with --retain-resources. The new stack needs its name. "
                f"Export the lines that you want to keep, and delete it: aws logs delete-log-group --log-group-name {name}"
            )


def _state_of(stack: str) -> str | None:
    try:
        return boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
