"""Tests that a failed first deployment leaves nothing, regardless of the resource that fails, so
that the next one starts clean.
"""

import pytest

from .conftest import Account
from .stack import OF_SAM, Failed, Stack, delete, deploy_by_command, everything, fail, kinds

#: A resource of each part of the template: the table of users, a function, the indexer's event
#: source, an API, and the bucket.
RESOURCES = ["AccessTable", "TracesFunction", "IndexerMapping", "UsersApiStage", "ArtifactBucketPolicy"]


def test_a_first_deployment_that_fails_leaves_nothing(failed: Failed) -> None:
    """Checks the failed deployment that precedes the one that all other tests use."""
    _left_nothing(failed)
    # Resources with data were created before the failure. They are only retained if the stack has
    # been complete once.
    assert {("Table", "CREATE_COMPLETE"), ("IndexerFunction", "CREATE_COMPLETE")} <= failed.events


@pytest.mark.slow
def test_wherever_it_fails(account: Account) -> None:
    before = everything(account.emulator)
    for resource in RESOURCES:
        _left_nothing(fail(account.emulator, account.directory, "mlflow-dev", resource, "--environment", "dev"))
    done = deploy_by_command(account.emulator, account.directory, "--environment", "dev")
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    delete(Stack(account.emulator, "mlflow-dev"), account.directory)
    assert kinds({one for one in everything(account.emulator) - before if OF_SAM not in one}) == {"bucket": 1, "table": 2}


def _left_nothing(failed: Failed) -> None:
    assert failed.status == 1
    assert (failed.resource, "CREATE_FAILED") in failed.events
    assert failed.left == set()
