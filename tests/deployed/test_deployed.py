"""Tests a stack from its first deployment to its deletion, and a second stack that continues with
its data.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from mlflow import MlflowClient

from .archived_traces import ARCHIVED_TRACES, old_traces_arrive
from .conftest import Deployment
from .extras import has_names_and_keys, name_and_keys
from .front import serving_api
from .rare import RARE, sends_in_parts
from .registries import REGISTRIES, registrations_in_a_workspace
from .restoring import Restored, restore
from .rights import depends, expected, unused
from .single_sign_on import SINGLE_SIGN_ON
from .stack import delete, deploy, everything, kinds
from .steps import PASSWORD, STEPS, marked, token_of, wait_for
from .wire import Call


def test_a_deployment_from_its_beginning_to_its_end(signing: Deployment, subtests: pytest.Subtests, tmp_path: Path) -> None:
    account, stack = signing.account, signing.stack
    with subtests.test("the command protects the tables and prints the next steps"):
        for name in ("TableName", "AccessTableName"):
            assert account.emulator.dynamodb.describe_table(TableName=stack.outputs[name])["Table"]["DeletionProtectionEnabled"] is True
        [described] = account.emulator.cloudformation.describe_stacks(StackName=stack.name)["Stacks"]
        assert described["Tags"] == [{"Key": "mlflow-stack", "Value": stack.name}]
        for said in (stack.outputs["TrackingUri"], stack.outputs["UsersUri"], "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD=true", "./deploy --admin NAME"):
            assert said in signing.said
    with subtests.test("experiment 0 exists before the first request of a client"):
        assert "the first call of" not in signing.said
        key = {"PK": {"S": "EXP#0"}, "SK": {"S": "E#META"}}
        assert "Item" in account.emulator.dynamodb.get_item(TableName=stack.outputs["TableName"], Key=key)
    with subtests.test("the first call of the housekeeper removes nothing"):
        answer = account.emulator.functions.invoke(FunctionName=f"{stack.name}-housekeeper", Payload=b'{"rawPath": "/health"}')
        assert json.loads(answer["Payload"].read()) == {"statusCode": 200}
    for step in [old_traces_arrive, *STEPS, *ARCHIVED_TRACES, *RARE, *REGISTRIES, *SINGLE_SIGN_ON]:
        with subtests.test(step.__name__):
            directory = tmp_path / step.__name__
            directory.mkdir()
            step(signing, directory)
    with subtests.test("no call was denied"):
        assert account.wire.denied == []
    outputs, roles = stack.outputs, stack.roles()
    token = token_of(signing, "ann")
    with subtests.test("both tables are restored to the same point in time"):
        restored = restore(account, "mlflow", outputs)
    delete(stack, account.directory)
    with subtests.test("only data remains after the stack is deleted"):
        left = everything(account.emulator)
        assert kinds(left) == {"bucket": 2, "stack": 1, "table": 4}, left
    with subtests.test("a second deployment continues with the restored tables"):
        _goes_on(signing, outputs, restored, token)
        assert account.wire.denied == []
    with subtests.test("each permission was used by one of the two stacks, or is listed as unused"):
        names = {outputs["TableName"]: "TABLE", outputs["AccessTableName"]: "ACCESS", outputs["BucketName"]: "BUCKET"}
        calls = [replace(call, resource=_as_before(call.resource, restored, outputs)) for call in account.wire.calls]
        _each_right_was_used(roles, calls, names)


def _as_before(resource: str, restored: Restored, outputs: dict[str, str]) -> str:
    return resource.replace(restored.data, outputs["TableName"]).replace(restored.access, outputs["AccessTableName"])


def _each_right_was_used(roles: dict[str, list[dict]], calls: list[Call], names: dict[str, str]) -> None:
    """Checks that all permissions were used. Both stacks have the same functions with the same
    permissions, on the same tables and bucket.
    """
    of_first = [replace(call, caller=re.sub("^again-", "mlflow-", call.caller)) for call in calls]
    left = unused(roles, of_first)
    for name, short in names.items():
        left = {(function.removeprefix("mlflow-"), action, resource.replace(name, short)) for function, action, resource in left}
    new = sorted(right for right in left - expected() if not depends(right))
    assert not new, "\n".join(["unused permissions", *map(str, new)])
    used = sorted(expected() - left)
    assert not used, "\n".join(["used permissions, to be removed from the list", *map(str, used)])


def _goes_on(first: Deployment, outputs: dict[str, str], restored: Restored, token: str) -> None:
    """Deploys a second stack on the restored tables, with workspaces, a custom domain and keys, and
    without passwords except that of the administrator. Checks that runs, files and users are
    available, but the token is not, and that new writes are indexed.
    """
    account, emulator = first.account, first.account.emulator
    named = name_and_keys(emulator)
    again = deploy(
        emulator,
        account.directory,
        "again",
        **named.parameters,
        Users="on",
        Passwords="off",
        PasswordAdministrators="admin",
        Workspaces="on",
        ExistingTable=restored.data,
        ExistingTableStream=restored.stream,
        ExistingAccessTable=restored.access,
        ArtifactRoot=f"s3://{outputs['BucketName']}",
        MaxArtifactSize="1000000",
    )
    assert "Table" not in again.resources() and "ArtifactBucket" not in again.resources()
    apis = again.apis()
    has_names_and_keys(again, apis, named)
    with serving_api(emulator, apis["Api"], first.caller) as signed, serving_api(emulator, apis["UsersApi"], first.caller) as users:
        client = MlflowClient(signed)
        [run] = client.search_runs([client.get_experiment_by_name("quickstart").experiment_id], "metrics.loss < 0.2")
        fetched = client.download_artifacts(run.info.run_id, "notes.txt")
        assert Path(fetched).read_text() == "Each step halves the loss."
        sends_in_parts(signed)
        registrations_in_a_workspace(signed)
        current = f"{users}/api/2.0/mlflow/users/current"
        for name, status in [("admin", 200), ("ann", 401)]:
            shown = requests.get(current, auth=(name, PASSWORD), timeout=300)
            assert shown.status_code == status, shown.text
        assert requests.get(current, headers={"Authorization": f"Bearer {token}"}, timeout=300).status_code == 401
        experiment = client.create_experiment("afterwards")
        made = client.create_run(experiment, tags={"kind": "new"}).info.run_id
        client.set_terminated(made)
        wait_for(lambda: marked(again, experiment) == 0, "index of the second stack's run")
        assert [found.info.run_id for found in client.search_runs([experiment], "tags.kind = 'new'")] == [made]
    delete(again, account.directory)
    left = everything(emulator)
    assert kinds(left) == {"bucket": 2, "stack": 1, "table": 4}, left
