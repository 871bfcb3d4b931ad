"""The monthly budget of the stack.

It is not a resource of the template: some regions do not support the type and would refuse the whole
template, budgets are global to the account, and CloudFormation cannot change the address of a
budget with a fixed name. A budget that cannot be created does not fail the deployment.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from asked import unless_denied

#: Names of the settings, which are given like parameters of the template.
AMOUNT, EMAIL = "MonthlyBudget", "BudgetEmail"
#: Tag of all resources of a stack (samconfig.toml).
TAG = "mlflow-stack"
#: Notifications at 80 % of the budget, and when the forecast exceeds it.
_NOTIFICATIONS = [
    {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80, "ThresholdType": "PERCENTAGE"},
    {"NotificationType": "FORECASTED", "ComparisonOperator": "GREATER_THAN", "Threshold": 100, "ThresholdType": "PERCENTAGE"},
]
#: Short timeouts. In AWS partitions without AWS Budgets, its host name does not resolve, and
#: default retries take minutes.
_CONFIG = Config(connect_timeout=10, read_timeout=30, retries={"total_max_attempts": 3})


@dataclass(frozen=True)
class Wanted:
    """The settings of the budget. A setting that is `None` keeps its value."""

    amount: str | None = None
    email: str | None = None

    @property
    def is_given(self) -> bool:
        return self.amount is not None or self.email is not None

    @property
    def is_removal(self) -> bool:
        return self.amount is not None and float(self.amount) == 0

    def or_kept(self, parameters: Mapping[str, str]) -> "Wanted":
        """Fills settings that are not given with the parameters of a stack whose template still
        contained the budget. Updating such a stack deletes its budget."""
        if float(parameters.get(AMOUNT) or 0) == 0:
            return self
        return Wanted(self.amount or parameters[AMOUNT], self.email or parameters.get(EMAIL))


def separate(settings: Mapping[str, str]) -> tuple[dict[str, str], Wanted]:
    """Separates the settings of the budget from the parameters of the template."""
    parameters = {name: value for name, value in settings.items() if name not in (AMOUNT, EMAIL)}
    return parameters, Wanted(settings.get(AMOUNT), settings.get(EMAIL))


def find_problems(wanted: Wanted, stack: str, region: str, account: str, kept: Mapping[str, str]) -> Iterator[str]:
    """Checks the settings. `kept` has the parameters of the present stack."""
    if wanted.amount is not None and not re.fullmatch(r"\d+(\.\d+)?", wanted.amount):
        yield f"{AMOUNT}={wanted.amount}: it must be an amount in US dollars, such as 200, or 0 for none."
        return
    if wanted.email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+", wanted.email):
        yield f"{EMAIL}={wanted.email}: it must be an email address."
        return
    merged = wanted.or_kept(kept)
    if not merged.is_given or merged.is_removal or (merged.amount and merged.email):
        return
    with unless_denied("whether the stack already has a budget"):
        if Budget(account, stack, region).current() is None:
            yield f"{AMOUNT} requires {EMAIL}, the address for notifications." if merged.amount else f"{EMAIL} requires {AMOUNT}, the amount in US dollars."


class Budget:
    """The budget of a stack. The name contains the region, because budgets are global to the
    account.
    """

    def __init__(self, account: str, stack: str, region: str, client: Any = None):
        self._client = client or boto3.client("budgets", config=_CONFIG)
        self.name, self._region = f"{stack}-{region}", region
        self._of = {"AccountId": account, "BudgetName": self.name}

    def current(self) -> dict[str, Any] | None:
        try:
            return self._client.describe_budget(**self._of)["Budget"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
            return None

    def settle(self, wanted: Wanted, tag: str | None) -> str:
        """Creates, changes or deletes the budget, and returns what was done. `tag` is the value of
        the stack's tag.
        """
        try:
            return self._settle(wanted, tag)
        except (BotoCoreError, ClientError) as error:
            return f"Note: the stack is deployed, but its budget {self.name} is not as requested: {error}"

    def remove(self) -> str:
        """Deletes the budget, if there is one."""
        return self.settle(Wanted(amount="0"), None)

    def _settle(self, wanted: Wanted, tag: str | None) -> str:
        current = self.current()
        if wanted.is_removal:
            if current is None:
                return ""
            self._client.delete_budget(**self._of)
            return f"Deleted the budget {self.name}."
        if not tag:
            return f"Note: there is no budget, because the stack has no tag {TAG} (samconfig.toml), by which its costs would be found."
        if current is None and not (wanted.amount and wanted.email):
            return f"Note: there is no budget, because it requires both {AMOUNT} and {EMAIL}."
        amount = wanted.amount or current["BudgetLimit"]["Amount"]
        budget = {
            "BudgetName": self.name,
            "BudgetType": "COST",
            "TimeUnit": "MONTHLY",
            "BudgetLimit": {"Amount": amount, "Unit": "USD"},
            # Stacks of the same name in other regions have the same tag.
            "CostFilters": {"TagKeyValue": [f"user:{TAG}${tag}"], "Region": [self._region]},
        }
        if current is None:
            told = [{"Notification": one, "Subscribers": [_subscriber(wanted.email)]} for one in _NOTIFICATIONS]
            self._client.create_budget(AccountId=self._of["AccountId"], Budget=budget, NotificationsWithSubscribers=told)
        else:
            self._client.update_budget(AccountId=self._of["AccountId"], NewBudget=budget)
            if wanted.email:
                self._notify(wanted.email)
        return f"The budget {self.name} is {amount} USD per month."

    def _notify(self, email: str) -> None:
        """Makes this address the only email address of each notification. It is added before the
        others are removed, because a notification cannot exist without a subscriber."""
        present = {_key(one): one for one in self._client.describe_notifications_for_budget(**self._of).get("Notifications", [])}
        for notification in _NOTIFICATIONS:
            if _key(notification) not in present:
                self._client.create_notification(**self._of, Notification=notification, Subscribers=[_subscriber(email)])
                continue
            of = self._of | {"Notification": notification}
            subscribers = self._client.describe_subscribers_for_notification(**of).get("Subscribers", [])
            if _subscriber(email) not in subscribers:
                self._client.create_subscriber(**of, Subscriber=_subscriber(email))
            for other in subscribers:
                if other["SubscriptionType"] == "EMAIL" and other != _subscriber(email):
                    self._client.delete_subscriber(**of, Subscriber=other)


def _subscriber(email: str | None) -> dict[str, str]:
    return {"SubscriptionType": "EMAIL", "Address": email or ""}


def _key(notification: Mapping[str, Any]) -> tuple[str, str, float]:
    return notification["NotificationType"], notification["ComparisonOperator"], float(notification["Threshold"])
