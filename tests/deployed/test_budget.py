"""Tests the budget of `tools/deploy`: with the emulator's Budgets, and with a service that refuses."""

import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from .conftest import Account
from .emulator import ACCOUNT, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import budget  # noqa: E402
from budget import Budget, Wanted, separate  # noqa: E402


def _addresses(client: Any, name: str) -> dict[str, list[str]]:
    """Returns the addresses of each kind of notification."""
    of = {"AccountId": ACCOUNT, "BudgetName": name}
    told = client.describe_notifications_for_budget(**of)["Notifications"]
    return {
        one["NotificationType"]: [
            subscriber["Address"] for subscriber in client.describe_subscribers_for_notification(**of, Notification=one)["Subscribers"]
        ]
        for one in told
    }


def test_a_budget_is_created_changed_and_deleted(account: Account):
    client = account.emulator.client("budgets")
    mine, other = (Budget(ACCOUNT, "budgeted", region, client) for region in ("eu-central-1", "us-east-1"))
    assert "budgeted-eu-central-1 is 50 USD" in mine.settle(Wanted("50", "ops@example.com"), "budgeted")
    # A stack of the same name in another region has a budget of its own.
    assert "budgeted-us-east-1 is 70 USD" in other.settle(Wanted("70", "ops@example.com"), "budgeted")
    found = mine.current()
    assert found["CostFilters"] == {"TagKeyValue": ["user:mlflow-stack$budgeted"], "Region": ["eu-central-1"]}
    assert _addresses(client, mine.name) == {"ACTUAL": ["ops@example.com"], "FORECASTED": ["ops@example.com"]}

    # A new address replaces the earlier one. The amount and subscribers of other kinds are kept.
    topic = {"SubscriptionType": "SNS", "Address": "arn:aws:sns:eu-central-1:123456789012:ops"}
    of = {"AccountId": ACCOUNT, "BudgetName": mine.name}
    [actual] = [one for one in client.describe_notifications_for_budget(**of)["Notifications"] if one["NotificationType"] == "ACTUAL"]
    client.create_subscriber(**of, Notification=actual, Subscriber=topic)
    mine.settle(Wanted(email="finance@example.com"), "budgeted")
    assert float(mine.current()["BudgetLimit"]["Amount"]) == 50
    assert _addresses(client, mine.name) == {"ACTUAL": [topic["Address"], "finance@example.com"], "FORECASTED": ["finance@example.com"]}
    mine.settle(Wanted(amount="60.5"), "budgeted")
    assert float(mine.current()["BudgetLimit"]["Amount"]) == 60.5
    assert _addresses(client, mine.name)["FORECASTED"] == ["finance@example.com"]

    assert "Deleted" in mine.settle(Wanted(amount="0"), "budgeted")
    assert mine.current() is None and other.current() is not None
    assert mine.remove() == ""
    assert "Deleted" in other.remove()


@pytest.mark.parametrize("without", ["ACTUAL", "FORECASTED"])
def test_a_notification_that_was_deleted_by_hand_is_created_again(account: Account, without: str):
    client = account.emulator.client("budgets")
    mine = Budget(ACCOUNT, f"without-{without}", "eu-central-1", client)
    mine.settle(Wanted("50", "ops@example.com"), "budgeted")
    of = {"AccountId": ACCOUNT, "BudgetName": mine.name}
    [one] = [one for one in client.describe_notifications_for_budget(**of)["Notifications"] if one["NotificationType"] == without]
    client.delete_notification(**of, Notification=one)
    mine.settle(Wanted(email="ops@example.com"), "budgeted")
    assert _addresses(client, mine.name)[without] == ["ops@example.com"]
    mine.remove()


class _Failing:
    def __init__(self, error: Exception):
        self._error = error

    def describe_budget(self, **_: str) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error, said",
    [
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeBudget"), "AccessDeniedException"),
        (EndpointConnectionError(endpoint_url="https://budgets.us-gov-west-1.amazonaws.com"), "budgets.us-gov-west-1"),
    ],
)
def test_a_budget_that_cannot_be_created_does_not_fail_the_deployment(error: Exception, said: str):
    told = Budget(ACCOUNT, "mlflow", "us-gov-west-1", _Failing(error)).settle(Wanted("50", "ops@example.com"), "mlflow")
    assert told.startswith("Note: the stack is deployed") and said in told


def test_a_stack_without_the_tag_has_no_budget(account: Account):
    mine = Budget(ACCOUNT, "untagged", "eu-central-1", account.emulator.client("budgets"))
    assert "no tag mlflow-stack" in mine.settle(Wanted("50", "ops@example.com"), None)
    assert mine.current() is None


@pytest.mark.parametrize("wanted", [Wanted(amount="50"), Wanted(email="ops@example.com")])
def test_half_a_budget_is_not_created(account: Account, wanted: Wanted):
    """Checks the fallback for an incomplete budget, which the checks before a deployment refuse if
    they have the permission to do so.
    """
    mine = Budget(ACCOUNT, "half", "eu-central-1", account.emulator.client("budgets"))
    assert "requires both MonthlyBudget and BudgetEmail" in mine.settle(wanted, "half")
    assert mine.current() is None


def test_settings_of_the_budget_are_not_parameters_of_the_template():
    parameters, wanted = separate({"Users": "on", "MonthlyBudget": "50", "BudgetEmail": "ops@example.com"})
    assert (parameters, wanted) == ({"Users": "on"}, Wanted("50", "ops@example.com"))
    assert not separate({"Users": "on"})[1].is_given


def test_a_stack_of_an_earlier_template_keeps_its_budget():
    kept = {"MonthlyBudget": "50", "BudgetEmail": "ops@example.com"}
    assert Wanted().or_kept(kept) == Wanted("50", "ops@example.com")
    assert Wanted(email="new@example.com").or_kept(kept) == Wanted("50", "new@example.com")
    assert Wanted(amount="0").or_kept(kept).is_removal
    assert Wanted().or_kept({"MonthlyBudget": "0", "BudgetEmail": ""}) == Wanted().or_kept({}) == Wanted()


@pytest.mark.parametrize(
    "wanted, has_one, why",
    [
        (Wanted("50"), False, "requires BudgetEmail"),
        (Wanted(email="ops@example.com"), False, "requires MonthlyBudget"),
        (Wanted("a lot", "ops@example.com"), False, "an amount in US dollars"),
        (Wanted("-1", "ops@example.com"), False, "an amount in US dollars"),
        (Wanted("50", "ops"), False, "an email address"),
        (Wanted("50"), True, None),
        (Wanted(email="ops@example.com"), True, None),
        (Wanted("50", "ops@example.com"), False, None),
        (Wanted("0"), False, None),
        (Wanted(), False, None),
    ],
)
def test_settings_that_are_incomplete_are_refused(monkeypatch: pytest.MonkeyPatch, wanted: Wanted, has_one: bool, why: str | None):
    class Client:
        def describe_budget(self, **_: str) -> dict:
            if has_one:
                return {"Budget": {}}
            raise ClientError({"Error": {"Code": "NotFoundException", "Message": "none"}}, "DescribeBudget")

    monkeypatch.setattr(budget.boto3, "client", lambda *_, **__: Client())
    found = list(budget.find_problems(wanted, "mlflow", "eu-central-1", ACCOUNT, {}))
    assert [why in one for one in found] == ([True] if why else [])
