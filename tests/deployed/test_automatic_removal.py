"""Tests that deleted entities are removed automatically after the retention period."""

import pytest

from .conftest import Deployment
from .rare import is_gone, removal_after, something_deleted
from .steps import wait_for


@pytest.mark.slow
def test_what_was_deleted_goes_without_anybody(signing: Deployment) -> None:
    """Waits for the stack's schedule, whose interval is set to a minute here."""
    stack, events = signing.stack, signing.account.emulator.client("events")
    rule = stack.resources()["HousekeeperSchedule"]
    assert events.describe_rule(Name=rule)["ScheduleExpression"] == "rate(1 hour)"
    removed = something_deleted(signing, "removed by the schedule")
    with removal_after(signing, "0s"):
        events.put_rule(Name=rule, ScheduleExpression="rate(1 minute)", State="ENABLED")
        wait_for(lambda: is_gone(signing, removed), "removal by the schedule")
    assert signing.account.wire.denied == []
