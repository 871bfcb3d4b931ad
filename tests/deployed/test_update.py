"""Tests that a stack of an earlier template is updated to the current one, and keeps its data and
its URLs.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient

from .conftest import Account, trainer
from .extras import has_names_and_keys, name_and_keys
from .front import serving_api
from .stack import OF_SAM, Stack, delete, deploy_by_command, everything, kinds, restore_by_command
from .steps import marked, wait_for

_ENVIRONMENT = ("--environment", "prod")


@pytest.mark.slow
def test_a_stack_is_updated_with_a_changed_template(account: Account, sign: pytest.MonkeyPatch) -> None:
    before = everything(account.emulator)
    with _changed(account.directory, _earlier):
        _deployed(account)
    stack, caller = Stack(account.emulator, "mlflow-prod"), trainer(account.emulator, "updater")
    outputs, apis = stack.outputs, stack.apis()
    assert all("/tokens" not in api.functions for api in apis.values())
    assert _memory(stack) == 256
    for name, value in caller.environment.items():
        sign.setenv(name, value)
    with serving_api(account.emulator, apis["Api"], caller) as url:
        run = _log(url, stack, "before")

    _deployed(account)
    assert stack.outputs == outputs
    apis = stack.apis()
    assert all(api.functions["/tokens"] == "mlflow-prod-auth" for api in apis.values())
    assert _memory(stack) == 512
    for name in ("TableName", "AccessTableName"):
        assert account.emulator.dynamodb.describe_table(TableName=outputs[name])["Table"]["DeletionProtectionEnabled"] is True
    with serving_api(account.emulator, apis["Api"], caller) as url:
        assert MlflowClient(url).get_run(run).data.metrics == {"loss": 0.5}
        _log(url, stack, "after")

    # Changes that would lose data are refused, and nothing is changed. (The emulator's change sets
    # omit resources that are removed due to a condition, such as an API.)
    with _changed(account.directory, lambda text: text.replace("lsi1sk", "lsi6sk")):
        done = deploy_by_command(account.emulator, account.directory, *_ENVIRONMENT)
    assert done.returncode == 1 and "Table would be replaced" in done.stderr, done.stderr
    assert stack.outputs == outputs

    extras = name_and_keys(account.emulator)
    more = extras.parameters | {"MaxReadUnits": "4000", "MaxWriteUnits": "1000"}
    _deployed(account, "--parameters", *(f"{name}={value}" for name, value in more.items()))
    assert {name: stack.outputs[name] for name in outputs} == outputs
    has_names_and_keys(stack, stack.apis(), extras)
    # The emulator does not apply updates of table limits, table keys and bucket properties.
    # tests/lambda/test_template.py checks them in the template.
    with serving_api(account.emulator, stack.apis()["Api"], caller) as url:
        assert MlflowClient(url).get_run(run).data.metrics == {"loss": 0.5}
    _restored_in_place(account, stack, outputs)
    with serving_api(account.emulator, stack.apis()["Api"], caller) as url:
        assert MlflowClient(url).get_run(run).data.metrics == {"loss": 0.5}
        _log(url, stack, "restored")
    delete(stack, account.directory)
    assert kinds({one for one in everything(account.emulator) - before if OF_SAM not in one}) == {"bucket": 1, "table": 4}


def _restored_in_place(account: Account, stack: Stack, outputs: dict[str, str]) -> None:
    """Restores the tables into the stack itself, which keeps its URLs. The original tables are
    retained.
    """
    into = ("--stack", stack.name, "--at", "latest", "--into", "prod", "--built")
    done = restore_by_command(account.emulator, account.directory, *into)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    now = stack.outputs
    for name in ("TableName", "AccessTableName"):
        assert "-restored-" in now[name]
        assert account.emulator.dynamodb.describe_table(TableName=outputs[name])["Table"]["TableStatus"] == "ACTIVE"
    assert {name: now[name] for name in ("TrackingUri", "UsersUri", "BucketName")} == {
        name: outputs[name] for name in ("TrackingUri", "UsersUri", "BucketName")
    }


def _deployed(account: Account, *arguments: str) -> None:
    done = deploy_by_command(account.emulator, account.directory, *_ENVIRONMENT, *arguments)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


@contextmanager
def _changed(directory: Path, change: Callable[[str], str]) -> Iterator[None]:
    """Replaces the template temporarily."""
    path = directory / "template.yaml"
    text = path.read_text()
    path.write_text(change(text))
    try:
        yield
    finally:
        path.write_text(text)


def _earlier(text: str) -> str:
    """Returns an earlier version of the template: without a route, and with less memory for a
    function.
    """
    text, routes = re.subn(r"^          /tokens:\n(            .*\n)+", "", text, flags=re.MULTILINE)
    assert routes == 2
    tracking = text.index("  TrackingFunction:")
    return text[:tracking] + text[tracking:].replace("MemorySize: 512", "MemorySize: 256", 1)


def _memory(stack: Stack) -> int:
    return stack.emulator.functions.get_function_configuration(FunctionName=f"{stack.name}-tracking")["MemorySize"]


def _log(url: str, stack: Stack, name: str) -> str:
    """Logs a run, and waits until it is indexed."""
    client = MlflowClient(url)
    experiment = client.create_experiment(name)
    run = client.create_run(experiment).info.run_id
    client.log_metric(run, "loss", 0.5)
    client.set_terminated(run)
    wait_for(lambda: marked(stack, experiment) == 0, f"index of the run {name}")
    assert [one.info.run_id for one in client.search_runs([experiment], "metrics.loss = 0.5")] == [run]
    return run
