"""The stack in CloudFormation."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError, WaiterError

#: `update_stack` requires the second one, because the template has a transform.
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
_WAIT = {"Delay": 5, "MaxAttempts": 720}


class Stack:
    """A stack, which may not exist yet."""

    def __init__(self, client: Any, name: str):
        self._client, self.name = client, name

    def exists(self) -> bool:
        """Returns whether the stack was created. A stack with only a pending change set was not."""
        try:
            return self._described()["StackStatus"] != "REVIEW_IN_PROGRESS"
        except ClientError as error:
            if "does not exist" in str(error):
                return False
            raise

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self._described().get("Outputs", [])}

    def parameter(self, name: str) -> str | None:
        return self.parameters().get(name)

    def parameters(self) -> dict[str, str]:
        return {one["ParameterKey"]: one["ParameterValue"] for one in self._described().get("Parameters", [])}

    def tag(self, name: str) -> str | None:
        return next((one["Value"] for one in self._described().get("Tags", []) if one["Key"] == name), None)

    def resources(self, kind: str | None = None) -> dict[str, str]:
        """Returns the physical ids by logical id, optionally of one type. Resources are listed in
        pages, because a description has no more than 100.
        """
        pages = self._client.get_paginator("list_stack_resources").paginate(StackName=self.name)
        listed = [one for page in pages for one in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: one.get("PhysicalResourceId", "") for one in listed if one["ResourceStatus"] != "DELETE_COMPLETE" and kind in (None, one["ResourceType"])}

    def failed_resources(self) -> list[str]:
        """Returns the names of the resources whose last operation failed."""
        pages = self._client.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return [one["LogicalResourceId"] for page in pages for one in page["StackResourceSummaries"] if one["ResourceStatus"].endswith("_FAILED")]

    def has_tables(self) -> bool:
        """Returns whether the stack has created its tables."""
        return bool({"Table", "AccessTable"} & self.resources().keys())

    def change_set_in(self, said: str) -> str | None:
        """Returns the change set that SAM has printed, or `None` if there are no changes."""
        found = re.search(r"arn:[a-z-]+:cloudformation:\S+:changeSet/\S+", said)
        return found[0] if found else None

    def changes(self, change_set: str) -> Iterator[dict[str, Any]]:
        for page in self._client.get_paginator("describe_change_set").paginate(StackName=self.name, ChangeSetName=change_set):
            yield from page["Changes"]

    def drop(self, change_set: str) -> None:
        self._client.delete_change_set(StackName=self.name, ChangeSetName=change_set)

    def execute(self, change_set: str) -> None:
        self._client.execute_change_set(StackName=self.name, ChangeSetName=change_set)
        self._wait()

    def protect(self) -> None:
        """Enables deletion protection of the tables, without any other change."""
        print("Enabling deletion protection of the tables ...", flush=True)
        kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in self.parameters() if name != "DeletionProtection"]
        self._client.update_stack(
            StackName=self.name,
            UsePreviousTemplate=True,
            Capabilities=_CAPABILITIES,
            Parameters=[*kept, {"ParameterKey": "DeletionProtection", "ParameterValue": "true"}],
        )
        self._wait()

    def delete(self) -> bool:
        """Deletes the stack, and returns whether that succeeded. Uses the role that the stack was
        created with.

        `sam delete` would also delete the uploaded code, which other stacks of the same version use.
        """
        self._client.delete_stack(StackName=self.name)
        try:
            self._client.get_waiter("stack_delete_complete").wait(StackName=self.name, WaiterConfig=_WAIT)
        except WaiterError:
            return False
        return True

    def _described(self) -> dict[str, Any]:
        return self._client.describe_stacks(StackName=self.name)["Stacks"][0]

    def _wait(self) -> None:
        try:
            self._client.get_waiter("stack_update_complete").wait(StackName=self.name, WaiterConfig=_WAIT)
        except WaiterError:
            failed = [f"- {one['LogicalResourceId']}: {one.get('ResourceStatusReason', '')}" for one in self._last_events() if one["ResourceStatus"].endswith("FAILED")]
            sys.exit("The update failed and was rolled back:\n\n" + "\n".join(failed[:10]))

    def _last_events(self) -> Iterator[dict[str, Any]]:
        """Yields the events of the last update, newest first."""
        for page in self._client.get_paginator("describe_stack_events").paginate(StackName=self.name):
            for event in page["StackEvents"]:
                yield event
                if (event["ResourceType"], event["ResourceStatus"]) == ("AWS::CloudFormation::Stack", "UPDATE_IN_PROGRESS"):
                    return
