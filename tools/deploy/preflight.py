"""What a deployment would fail for, found before anything is built or changed."""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import data
import names
from settings import Settings
from stack import Stack
from template import read_template, refused

#: Functions are called `<stack>-<function>`, and a name has 64 characters.
_LONGEST_STACK_NAME = 52
#: AWS leaves so many of an account's sandboxes to functions for which none are reserved.
_UNRESERVED = 100
_CONCURRENCY = ("TrackingConcurrency", "IndexerConcurrency")
#: The processor of the functions.
TARGET = "aarch64-unknown-linux-gnu"
_STATES_THAT_CAN_BE_UPDATED = re.compile(r"(CREATE|UPDATE|UPDATE_ROLLBACK|IMPORT|IMPORT_ROLLBACK)_COMPLETE$")


def find_problems(settings: Settings) -> list[str]:
    """What has to be done first; nothing if the deployment can begin."""
    return [*_of_this_machine(settings), *_of_the_account(settings)]


def _of_parameters(settings: Settings, state: str | None) -> Iterator[str]:
    """Each by itself, all of them together, and what they name."""
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
    # CloudFormation has looked at what the stack keeps.
    yield from data.find_problems(said, settings.region, template)
    yield from _of_sandboxes(said, kept)


def _of_sandboxes(said: Mapping[str, str], kept: Mapping[str, str]) -> Iterator[str]:
    """What the stack reserves already is its own to reserve again."""
    before = sum(int(kept.get(name, 0)) for name in _CONCURRENCY)
    wanted = sum(int({**kept, **said}.get(name, 0)) for name in _CONCURRENCY)
    if wanted <= before:
        return
    limit = boto3.client("lambda").get_account_settings()["AccountLimit"]
    free = limit.get("UnreservedConcurrentExecutions", limit["ConcurrentExecutions"]) + before
    if free - wanted < _UNRESERVED:
        yield (
            f"{wanted} sandboxes cannot be reserved: the account has {limit['ConcurrentExecutions']}, {free} of them not reserved by others, and AWS leaves "
            f"{_UNRESERVED} to other functions. Ask for more, or reserve fewer."
        )


def find_warnings(settings: Settings) -> Iterator[str]:
    """What will not fail, and ought to be known."""
    limit = _sandboxes()
    if limit < 1000:
        yield (
            f"this account has {limit} sandboxes for all its functions (new accounts begin with 10). The stack asks for none of its own, but what "
            "comes at once beyond that is answered 503, which clients repeat. Ask for more: aws service-quotas request-service-quota-increase "
            "--service-code lambda --quota-code L-B99A9384 --desired-value 1000"
        )
    if settings.parameters.get("Authorization") == "NONE" and settings.parameters.get("AccessMode", "none") == "none":
        yield "Authorization=NONE without users lets the whole internet read and delete everything."
    if settings.parameters.get("MonthlyBudget", "0") != "0":
        yield (
            "MonthlyBudget counts what bears the tag mlflow-stack, once that is activated for cost allocation: "
            "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status TagKey=mlflow-stack,Status=Active "
            "(a new tag is known to AWS a day after the first deployment)."
        )


def _of_this_machine(settings: Settings) -> Iterator[str]:
    if len(settings.stack) > _LONGEST_STACK_NAME or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", settings.stack):
        yield f"The stack's name, {settings.stack}, has to have at most {_LONGEST_STACK_NAME} letters, digits and hyphens, and to begin with a letter."
    if settings.is_built:
        return
    if not shutil.which("cargo") or not shutil.which("rustup"):
        yield "Rust is missing. Install it with rustup, which can add the processor of the functions: https://rustup.rs"
    if not settings.only_checks and not Path("ui/build/index.html").is_file():
        yield "The user interface is missing: make ui"


def _of_the_account(settings: Settings) -> Iterator[str]:
    if not settings.region:
        yield "No region is set: export AWS_REGION=eu-central-1, or name one in the AWS profile (aws configure set region eu-central-1)."
        return
    try:
        boto3.client("sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        yield f"AWS does not know who is calling ({error}). Sign in (aws sso login), or choose a profile: export AWS_PROFILE=NAME"
        return
    state = _state_of(settings.stack)
    if state is None:
        yield from _leftovers(settings)
    elif state.endswith("_IN_PROGRESS") and state != "REVIEW_IN_PROGRESS":
        yield f"The stack is being changed by somebody else ({state}): wait until that has ended."
    elif state != "REVIEW_IN_PROGRESS" and not _STATES_THAT_CAN_BE_UPDATED.search(state):
        yield (
            f"The stack is in the state {state}, in which it cannot be updated. Tables and buckets that have data stay when it is deleted: "
            f"aws cloudformation delete-stack --stack-name {settings.stack}"
        )
        return
    yield from _of_parameters(settings, state)


def _leftovers(settings: Settings) -> Iterator[str]:
    """Log groups of a stack that is gone would have the same names as those of the new one."""
    prefix = f"/aws/lambda/{settings.stack}/"
    found = boto3.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    for group in found:
        yield f"A log group is left of an earlier stack: aws logs delete-log-group --log-group-name {group['logGroupName']}"


def _state_of(stack: str) -> str | None:
    try:
        return boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def _sandboxes() -> int:
    return boto3.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
