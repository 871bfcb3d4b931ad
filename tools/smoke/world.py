"""The stack under test: its APIs, tables and logs, and an experiment in it that belongs to the
checks.
"""

import json
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import requests
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from .check import NotAsked
from .spending import Deadline, Spending

sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python/src"))
from mlflow_serverless_auth import SigV4  # noqa: E402

#: Name prefix of everything that the checks create.
PREFIX = "smoke-test-"
API = "/api/2.0/mlflow"
#: Tag of all resources of a stack (samconfig.toml).
TAG = "mlflow-stack"
FILES = "/api/2.0/mlflow-artifacts/artifacts"
#: Throttled requests are retried, like by MLflow's clients.
_REPEATS, _PAUSE_SECONDS = 5, 2


class World:
    """State of one run of the checks."""

    def __init__(self, stack: str, signed: str | None, users: str | None, patience: float, *, restores: bool, cleanup: Any):
        self.stack, self._patience, self.restores, self.cleanup = stack, patience, restores, cleanup
        self.deadline, self.spending = Deadline(), Spending()
        self._described = self.aws("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        self.outputs = {one["OutputKey"]: one["OutputValue"] for one in self._described.get("Outputs", [])}
        self.table, self.access_table = self.outputs["TableName"], self.outputs["AccessTableName"]
        self.signed = (signed or self.outputs["TrackingUri"]).rstrip("/")
        self._users = users or self.outputs.get("UsersUri")
        self.label = PREFIX + secrets.token_hex(4)
        self.signer = SigV4()

    @property
    def users(self) -> str:
        """Returns the URL of the API of users."""
        if not self._users:
            raise NotAsked("the stack has no API of users")
        return self._users.rstrip("/")

    def parameter(self, name: str) -> str:
        given = {one["ParameterKey"]: one["ParameterValue"] for one in self._described.get("Parameters", [])}
        return given.get(name, "")

    @property
    def tag(self) -> str:
        """Returns the value of the stack's tag."""
        return next((one["Value"] for one in self._described.get("Tags", []) if one["Key"] == TAG), self.stack)

    def resources(self, kind: str) -> dict[str, str]:
        """Returns the physical ids of the stack's resources of one type by their names in the
        template.
        """
        with asked("listing the resources of the stack"):
            pages = self.aws("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.stack)
            listed = [one for page in pages for one in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in listed if one["ResourceType"] == kind}

    def aws(self, service: str, **credentials: str) -> Any:
        config = Config(retries={"total_max_attempts": 3}, read_timeout=60)
        return boto3.client(service, config=config, **credentials)

    @cached_property
    def dynamodb(self) -> Any:
        return self.aws("dynamodb")

    @cached_property
    def experiment(self) -> str:
        """Returns the id of this run's experiment, which is removed at the end."""
        made = self.done("POST", f"{API}/experiments/create", json={"name": self.label})
        return made["experiment_id"]

    def call(self, method: str, path: str, *, url: str | None = None, auth: Any = None, is_signed: bool = True, **sent: Any) -> requests.Response:
        """Sends a request, signed by default, and returns its response regardless of the status."""
        self.spending.before()
        began = time.monotonic()
        by = auth or (self.signer if is_signed else None)
        answer = requests.request(
            method, (url or self.signed) + path, auth=by, timeout=self._patience, allow_redirects=sent.pop("follows", False), **sent
        )
        length = int(answer.request.headers.get("Content-Length") or 0)
        self.spending.request(length, len(answer.content), time.monotonic() - began)
        return answer

    def done(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Sends a request that has to succeed before a check can run."""
        answer = self.call(method, path, **sent)
        for _ in range(_REPEATS):
            if answer.status_code not in (429, 503):
                break
            time.sleep(_PAUSE_SECONDS)
            answer = self.call(method, path, **sent)
        if answer.status_code != 200:
            raise NotAsked(f"{method} {path.partition('?')[0]} returned {answer.status_code}")
        return answer.json()

    def file(self, name: str) -> str:
        """Returns the path of a file of this run. The name is used without further encoding."""
        return f"{FILES}/{self.experiment}/{self.label}/{name}"

    def names(self) -> list[str]:
        """Returns the names of this run's files."""
        listed = self.done("GET", FILES, params={"path": f"{self.experiment}/{self.label}"})
        return sorted(file["path"] for file in listed.get("files", []))

    def wait(self, condition: Callable[[], Any], seconds: float) -> float | None:
        """Waits for a condition. Returns the seconds until it was true, or `None` after the
        timeout.
        """
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > min(seconds, self.deadline.left):
                return None
            time.sleep(1)
        return round(time.monotonic() - began, 1)

    def log_lines(self, function: str, word: str, seconds: float) -> list[dict[str, Any]]:
        """Returns the recent lines of a function's log that contain this word. Lines that are not
        JSON are left out.
        """
        found: list[dict[str, Any]] = []
        sent = {"logGroupName": f"/aws/lambda/{self.stack}/{function}", "filterPattern": f'"{word}"', "startTime": int((time.time() - seconds) * 1000)}
        with asked("reading the logs"):
            for page in self.aws("logs").get_paginator("filter_log_events").paginate(**sent):
                for event in page["events"]:
                    with suppress(ValueError):
                        found.append(json.loads(event["message"]))
        return found


class asked:
    """Turns an error of AWS into the reason why a check could not run."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _: Any) -> None:
        if isinstance(error, ClientError):
            raise NotAsked(f"{self._what}: {error.response['Error']['Code']}") from error
        if isinstance(error, BotoCoreError):
            raise NotAsked(f"{self._what}: {type(error).__name__}") from error
