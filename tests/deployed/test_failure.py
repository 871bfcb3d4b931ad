"""A first deployment that fails leaves nothing behind, so that the next one begins anew."""

from .conftest import Account
from .emulator import FAILING_RESOURCE, FAILING_STACK
from .stack import deploy_by_command, everything

#: SAM keeps the code of all stacks of an account there, and leaves it.
_OF_SAM = "aws-sam-cli-managed-default"


def test_a_first_deployment_that_fails_leaves_nothing(account: Account) -> None:
    before = everything(account.emulator)
    done = deploy_by_command(account.emulator, account.directory, "--environment", "dev")
    assert done.returncode == 1, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    cloudformation = account.emulator.cloudformation
    [stack] = [one["StackId"] for one in cloudformation.list_stacks()["StackSummaries"] if one["StackName"] == FAILING_STACK]
    events = {(one["LogicalResourceId"], one["ResourceStatus"]) for one in cloudformation.describe_stack_events(StackName=stack)["StackEvents"]}
    assert (FAILING_RESOURCE, "CREATE_FAILED") in events
    # Data was made before that, and stays only with a stack that once stood.
    assert {("Table", "CREATE_COMPLETE"), ("IndexerFunction", "CREATE_COMPLETE")} <= events
    assert {thing for thing in everything(account.emulator) - before if _OF_SAM not in thing} == set()
