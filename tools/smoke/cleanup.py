"""Removes the resources of the checks: at the end, after an interruption, and those left over by an
earlier run.
"""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from requests import RequestException

from .check import NotAsked
from .platform import RESTORED, remove_table
from .spending import Spent
from .world import API, FILES, PREFIX, World

_REPOSITORY = Path(__file__).resolve().parents[2]
_SECONDS = 90


@dataclass
class Cleanup:
    """Cleanup steps, executed in reverse order."""

    _steps: list[tuple[str, Callable[[], None]]] = field(default_factory=list)

    def add(self, what: str, step: Callable[[], None]) -> None:
        self._steps.append((what, step))

    def run(self) -> list[str]:
        """Executes the steps, and returns what could not be removed, with the reason."""
        left = []
        while self._steps:
            what, step = self._steps.pop()
            try:
                step()
            except (NotAsked, Spent, ClientError, BotoCoreError, RequestException, OSError, subprocess.SubprocessError) as error:
                left.append(f"{what}: {error}")
        return left


def remove_all(world: World) -> None:
    """Removes everything whose name shows that it was created by a run of the checks, including
    runs that were killed.
    """
    found = world.done("POST", f"{API}/experiments/search", json={"max_results": 100, "view_type": "ALL", "filter": f"name LIKE '{PREFIX}%'"})
    experiments = found.get("experiments", [])
    for experiment in experiments:
        if experiment["lifecycle_stage"] == "active":
            identifier = experiment["experiment_id"]
            # The paths of this program's files do not depend on the experiment's artifact location.
            world.done("DELETE", f"{FILES}/{identifier}/{experiment['name']}")
            world.done("POST", f"{API}/experiments/delete", json={"experiment_id": identifier})
    models = world.done("GET", f"{API}/registered-models/search", params={"filter": f"name LIKE '{PREFIX}%'"})
    for model in models.get("registered_models", []):
        world.done("DELETE", f"{API}/registered-models/delete", json={"name": model["name"]})
    for table in _restored(world):
        remove_table(world, table)
    if experiments:
        _remove_for_good(world, [experiment["experiment_id"] for experiment in experiments])


def _restored(world: World) -> list[str]:
    """Returns tables that a run has restored and not deleted. Returns none if listing tables is not
    permitted.
    """
    with suppress(ClientError):
        pages = world.dynamodb.get_paginator("list_tables").paginate()
        return [name for page in pages for name in page["TableNames"] if name.startswith(world.stack + RESTORED)]
    return []


def _remove_for_good(world: World, experiments: list[str]) -> None:
    """Removes experiments permanently with the project's own program, because the API only marks
    them as deleted.
    """
    root = world.parameter("ArtifactRoot") or f"s3://{world.outputs['BucketName']}"
    place = ["--dynamodb-endpoint", world.dynamodb.meta.endpoint_url, "--table", world.table, "--artifacts-destination", root]
    command = ["gc", "--experiment-ids", ",".join(experiments), *place]
    program = _program()
    if program is None:
        raise NotAsked(f"the experiments are only marked as deleted, because mlflow-serverless was not found. Run: mlflow-serverless {' '.join(command)}")
    done = subprocess.run([program, *command], capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise NotAsked(f"mlflow-serverless gc exited with {done.returncode}: {done.stderr.strip()[-300:]}")


def _program() -> str | None:
    built = [_REPOSITORY / "target" / profile / "mlflow-serverless" for profile in ("release", "debug")]
    found = next((str(path) for path in built if path.is_file()), None)
    return found or shutil.which("mlflow-serverless")
