"""The stack from its first deployment to its deletion, and a second one that goes on with its data."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from mlflow import MlflowClient

from .conftest import Deployment
from .front import serving_api
from .rare import RARE, sends_in_parts
from .rights import depends, expected, unused
from .stack import delete, deploy, everything, kinds
from .steps import PASSWORD, STEPS, marked, wait_for
from .wire import Call


def test_a_deployment_from_its_beginning_to_its_end(signing: Deployment, subtests: pytest.Subtests, tmp_path: Path) -> None:
    account, stack = signing.account, signing.stack
    with subtests.test("the command protects the tables and says what comes next"):
        for name in ("TableName", "AccessTableName"):
            assert account.emulator.dynamodb.describe_table(TableName=stack.outputs[name])["Table"]["DeletionProtectionEnabled"] is True
        for said in (stack.outputs["TrackingUri"], stack.outputs["UsersUri"], "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD=true", "admin create"):
            assert said in signing.said
    for step in [*STEPS, *RARE]:
        with subtests.test(step.__name__):
            directory = tmp_path / step.__name__
            directory.mkdir()
            step(signing, directory)
    with subtests.test("no call was denied"):
        assert account.wire.denied == []
    outputs, roles = stack.outputs, stack.roles()
    delete(stack, account.directory)
    with subtests.test("data outlives the stack, and nothing else does"):
        assert kinds(everything(account.emulator)) == {"bucket": 2, "stack": 1, "table": 2}
    with subtests.test("a second deployment goes on with the data"):
        _goes_on(signing, outputs)
        assert account.wire.denied == []
    with subtests.test("each right was used by one of the two, or is listed"):
        names = {outputs["TableName"]: "TABLE", outputs["AccessTableName"]: "ACCESS", outputs["BucketName"]: "BUCKET"}
        _each_right_was_used(roles, account.wire.calls, names)


def _each_right_was_used(roles: dict[str, list[dict]], calls: list[Call], names: dict[str, str]) -> None:
    """Both stacks have the same functions with the same rights, on the same tables and the same bucket."""
    of_first = [replace(call, caller=re.sub("^again-", "mlflow-", call.caller)) for call in calls]
    left = unused(roles, of_first)
    for name, short in names.items():
        left = {(function.removeprefix("mlflow-"), action, resource.replace(name, short)) for function, action, resource in left}
    new = sorted(right for right in left - expected() if not depends(right))
    assert not new, "\n".join(["rights that are in no use", *map(str, new)])
    used = sorted(expected() - left)
    assert not used, "\n".join(["rights that are in use: take them off the list", *map(str, used)])


def _goes_on(first: Deployment, outputs: dict[str, str]) -> None:
    """All of it is there: runs, files, users; and what is written now is indexed."""
    account = first.account
    table = account.emulator.dynamodb.describe_table(TableName=outputs["TableName"])["Table"]
    again = deploy(
        account.emulator,
        account.directory,
        "again",
        Users="on",
        ExistingTable=outputs["TableName"],
        ExistingTableStream=table["LatestStreamLabel"],
        ExistingAccessTable=outputs["AccessTableName"],
        ArtifactRoot=f"s3://{outputs['BucketName']}",
        MaxArtifactSize="1000000",
    )
    assert "Table" not in again.resources() and "ArtifactBucket" not in again.resources()
    apis = again.apis()
    with serving_api(account.emulator, apis["Api"], first.caller) as signed, serving_api(account.emulator, apis["UsersApi"], first.caller) as users:
        client = MlflowClient(signed)
        [run] = client.search_runs([client.get_experiment_by_name("quickstart").experiment_id], "metrics.loss < 0.2")
        fetched = client.download_artifacts(run.info.run_id, "notes.txt")
        assert Path(fetched).read_text() == "Each step halves the loss."
        sends_in_parts(signed)
        shown = requests.get(f"{users}/api/2.0/mlflow/users/current", auth=("ann", PASSWORD), timeout=300)
        assert shown.status_code == 200, shown.text
        experiment = client.create_experiment("afterwards")
        made = client.create_run(experiment, tags={"kind": "new"}).info.run_id
        client.set_terminated(made)
        wait_for(lambda: marked(again, experiment) == 0, "index of the second stack's run")
        assert [found.info.run_id for found in client.search_runs([experiment], "tags.kind = 'new'")] == [made]
    delete(again, account.directory)
    assert kinds(everything(account.emulator)) == {"bucket": 2, "stack": 1, "table": 2}

