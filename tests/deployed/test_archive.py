"""Tests the archive of a release, from which operators deploy without Rust and without sources:
they deploy, create an administrator, sign in, use the server, change the budget and delete the
stack, with only the permissions of the documented policies.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import requests

from tests.support.http_server import Answer, Received, serving
from tests.support.servers import binary

from .conftest import _ARCHIVE, _UI, Account, Deployment
from .emulator import ACCOUNT, REGION, REPOSITORY
from .front import Caller, serving_api
from .policies import NAMES, read_policy
from .stack import OF_SAM, Stack, deploy_by_command, everything, kinds, unpack
from .steps import PASSWORD, a_browser_signs_in, quickstart

sys.path.insert(0, str(REPOSITORY / "tools/release"))
import bom  # noqa: E402
import build  # noqa: E402
from contents import function_archive  # noqa: E402

_STACK, _ELSEWHERE = "mlflow-dev", "us-east-1"
_ENVIRONMENT = ("--environment", "dev")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an archive of development builds for this machine, unless one is given."""
    if _ARCHIVE:
        return Path(_ARCHIVE).resolve()
    monkeypatch.setattr(bom, "components", lambda *_: "{}\n")
    monkeypatch.setattr(bom, "licence_texts", lambda *_: "\n")
    ui, programs = tmp_path / "ui", tmp_path / "programs"
    for path in (ui, programs):
        path.mkdir()
    # The functions get the user interface from the emulator's environment.
    (ui / "build").mkdir()
    (ui / "build/index.html").write_bytes((_UI / "index.html").read_bytes())
    (ui / "version").write_text("3.17.2")
    for name in build.function_names(REPOSITORY):
        subprocess.run(["strip", "-o", programs / name, binary().with_name(name)], check=True)
    return function_archive(REPOSITORY, "x86_64", {name: programs / name for name in build.function_names(REPOSITORY)}, ui, tmp_path)


@pytest.fixture
def deployer(account: Account) -> Caller:
    """Creates an IAM user with the policies of the guide."""
    iam = account.emulator.iam
    iam.create_user(UserName="deployer")
    for name in NAMES:
        iam.put_user_policy(UserName="deployer", PolicyName=name, PolicyDocument=json.dumps(read_policy(name, _STACK)))
    # The emulator requires a permission per operation of AWS Budgets, on all resources. AWS itself
    # has two permissions that cover all operations.
    statement = {"Effect": "Allow", "Action": "budgets:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="deployer", PolicyName="budgets", PolicyDocument=document)
    key = iam.create_access_key(UserName="deployer")["AccessKey"]
    return Caller("deployer", key["AccessKeyId"], key["SecretAccessKey"])


#: Actions of CloudFormation that the deployer is allowed to perform, but that a successful
#: deployment does not need.
_RARE = {
    "ContinueUpdateRollback": "advised after a failed rollback",
    "DeleteChangeSet": "a change that would lose data is refused",
    "RollbackStack": "advised after an update that was not rolled back",
    "TagResource": "not a request: CloudFormation requires it for change sets with tags",
}


@dataclass(frozen=True)
class _OverTls:
    """A proxy in front of the emulator, which treats requests through it as sent over TLS. The
    policy of the code bucket requires TLS, except from the account's root user. Records the actions
    of CloudFormation.
    """

    account: Account
    actions: set[str] = field(default_factory=set)
    url: str = ""

    def answer(self, request: Received) -> Answer:
        if "/cloudformation/" in " ".join(request.values("authorization")):
            self.actions.update(parse_qs(request.body.decode()).get("Action", []))
        return self.account.wire.forward(request)


@pytest.fixture
def over_tls(account: Account) -> Iterator[_OverTls]:
    recorded = _OverTls(account)
    with serving(recorded.answer) as url:
        yield replace(recorded, url=url)


@pytest.mark.slow
def test_from_an_archive_to_a_deleted_stack(
    account: Account, over_tls: _OverTls, deployer: Caller, archive: Path, sign: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    emulator = account.emulator
    project = unpack(archive, tmp_path / "unpacked")
    before = everything(emulator)

    def run(*arguments: str, sent: str = "", region: str = REGION) -> str:
        variables = {"AWS_ACCESS_KEY_ID": deployer.key, "AWS_SECRET_ACCESS_KEY": deployer.secret, "AWS_REGION": region, "AWS_ENDPOINT_URL": over_tls.url}
        done = deploy_by_command(emulator, project, *_ENVIRONMENT, *arguments, sent=sent, **variables)
        assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
        for word in ("cannot check", "cargo", "Note: the first call", "Note: the stack is deployed"):
            assert word not in done.stdout, done.stdout
        return done.stdout

    said = run("--parameters", "MonthlyBudget=50", "BudgetEmail=ops@example.com")
    assert f"./deploy {' '.join(_ENVIRONMENT)} --admin NAME" in said
    stack = Stack(emulator, _STACK)
    outputs = stack.outputs
    assert _budget(account, REGION) == (50, ["ops@example.com"])
    for name in ("TableName", "AccessTableName"):
        assert emulator.dynamodb.describe_table(TableName=outputs[name])["Table"]["DeletionProtectionEnabled"] is True

    for name, value in deployer.environment.items():
        sign.setenv(name, value)
    apis = stack.apis()
    with serving_api(emulator, apis["Api"], deployer) as signed, serving_api(emulator, apis["UsersApi"], deployer) as users:
        # The sign-in page shows the same command.
        assert "<code>./deploy --admin NAME</code>" in requests.get(f"{users}/signin", timeout=300).text
        admin = ("--admin", "admin", "--tracking-uri", signed)
        assert f"Created the administrator admin. Sign in at {outputs['UsersUri']}/" in run(*admin, sent=f"{PASSWORD}\n")
        assert "already an administrator" in run(*admin, sent="another password\n")
        deployment = Deployment(account, stack, said, deployer, signed, users)
        quickstart(deployment, tmp_path)
        a_browser_signs_in(deployment, tmp_path)

    # Changing only the address of the budget does not change the stack.
    run("--parameters", "BudgetEmail=finance@example.com")
    assert stack.outputs == outputs
    assert _budget(account, REGION) == (50, ["finance@example.com"])

    # A stack with the same name in another region has its own budget.
    run("--parameters", "MonthlyBudget=70", "BudgetEmail=ops@example.com", region=_ELSEWHERE)
    assert (_budget(account, REGION), _budget(account, _ELSEWHERE)) == ((50, ["finance@example.com"]), (70, ["ops@example.com"]))
    assert stack.outputs == outputs

    said = run("--delete", _STACK, region=_ELSEWHERE)
    assert _budget(account, _ELSEWHERE) is None and _budget(account, REGION) is not None
    there = emulator.client("cloudformation", region=_ELSEWHERE)
    assert [one["StackName"] for one in there.describe_stacks()["Stacks"] if one["StackStatus"] != "DELETE_COMPLETE"] == [OF_SAM]
    said = run("--delete", _STACK)
    assert set(re.findall(r"delete-table --table-name (\S+)", said)) == {outputs["TableName"], outputs["AccessTableName"]}
    assert _budget(account, REGION) is None
    left = {one for one in everything(emulator) - before if OF_SAM not in one}
    assert {kind: count for kind, count in kinds(left).items() if kind != "bucket"} == {"table": 2}
    assert f"bucket {outputs['BucketName']}" in left
    # Every action of CloudFormation in the deployer's policy is used, or listed as rare.
    statements = read_policy("deployer", _STACK)["Statement"]
    allowed = {action.removeprefix("cloudformation:") for one in statements for action in one["Action"] if action.startswith("cloudformation:")}
    assert allowed - over_tls.actions == set(_RARE)


def test_another_name_deletes_nothing(account: Account, tmp_path: Path) -> None:
    done = deploy_by_command(account.emulator, account.directory, *_ENVIRONMENT, "--delete", "mlflow")
    assert done.returncode == 1
    assert "Nothing was deleted: the stack of this environment is mlflow-dev, not mlflow." in done.stderr


def _budget(account: Account, region: str) -> tuple[float, list[str]] | None:
    """Returns the amount of the stack's budget, and the address of each notification."""
    client = account.emulator.client("budgets")
    of = {"AccountId": ACCOUNT, "BudgetName": f"{_STACK}-{region}"}
    try:
        amount = client.describe_budget(**of)["Budget"]["BudgetLimit"]["Amount"]
    except client.exceptions.NotFoundException:
        return None
    told = client.describe_notifications_for_budget(**of)["Notifications"]
    addresses = [client.describe_subscribers_for_notification(**of, Notification=one)["Subscribers"] for one in told]
    return float(amount), sorted({one["Address"] for subscribers in addresses for one in subscribers})
