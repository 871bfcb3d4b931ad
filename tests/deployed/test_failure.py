"""A first deployment that fails leaves nothing, wherever it fails, so that the next one begins as if there had been none."""

import pytest

from .conftest import Account
from .stack import OF_SAM, Failed, Stack, delete, deploy_by_command, everything, fail, kinds

#: One of each part of the template: what users are kept in, a function, what feeds the indexer, the way in, what is before the bucket.
RESOURCES = ["AccessTable", "TracesFunction", "IndexerMapping", "UsersApiStage", "ArtifactBucketPolicy"]


def test_a_first_deployment_that_fails_leaves_nothing(failed: Failed) -> None:
    """The next one is that of all other tests of this folder."""
    _left_nothing(failed)
    # Data was made before that, and stays only with a stack that once was complete.
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
