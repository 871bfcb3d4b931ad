"""Tests quotas in a deployed stack with workspaces: the stack counts daily usage, and refuses
requests beyond the quota.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import requests
from mlflow_serverless_auth import SigV4

from .conftest import Deployment
from .stack import deploy_by_command
from .steps import command, noise, wait_for

_HEADER = "X-MLFLOW-WORKSPACE"
_SECONDS = 300


@pytest.mark.slow
def test_quotas_hold(signing: Deployment, subtests: pytest.Subtests) -> None:
    with _workspaces(signing):
        team, other = _Team(signing, "bounded"), _Team(signing, "free")
        for setting, most, create in [
            ("daily-runs", "1", _Team.create_run),
            ("daily-traces", "1", _Team.start_trace),
            ("daily-bytes", "1000", _Team.export_span),
        ]:
            with subtests.test(setting):
                _quota_holds(signing, setting, most, team, other, create)
    assert signing.account.wire.denied == []


def _quota_holds(
    world: Deployment, setting: str, most: str, team: "_Team", other: "_Team", create: "Callable[[_Team], requests.Response]"
) -> None:
    for one in (team, other):
        assert create(one).status_code == 200
    command(world, "config", "set", setting, most, "--workspace", team.name, "--yes")
    try:
        shown = [line.split() for line in command(world, "config", "show").stdout.splitlines()]
        assert [setting, "workspace", team.name, most] in shown, shown
        refused = wait_for(lambda: _refused(create(team)), f"refusal by {setting}")
        assert refused["error_code"] == "BAD_REQUEST" and "quota" in refused["message"]
        # Another workspace is not affected.
        assert create(other).status_code == 200
    finally:
        command(world, "config", "unset", setting, "--workspace", team.name, "--yes")
    wait_for(lambda: create(team).status_code == 200, f"end of {setting}")


def _refused(answer: requests.Response) -> dict[str, str] | None:
    assert answer.status_code in (200, 400), answer.text
    return answer.json() if answer.status_code == 400 else None


class _Team:
    """A workspace with an experiment, and the requests of its members."""

    def __init__(self, world: Deployment, name: str):
        self.name, self._url = f"{name}-{time.time_ns()}", world.signed
        made = self._post("/api/3.0/mlflow/workspaces", {"name": self.name}, {})
        assert made.status_code in (200, 201), made.text
        created = self._post("/api/2.0/mlflow/experiments/create", {"name": "all"})
        assert created.status_code == 200, created.text
        self._experiment = created.json()["experiment_id"]

    def create_run(self) -> requests.Response:
        return self._post("/api/2.0/mlflow/runs/create", {"experiment_id": self._experiment})

    def start_trace(self) -> requests.Response:
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self._experiment}}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        info = {"trace_id": f"tr-{time.time_ns():032x}", "trace_location": place, "request_time": now, "state": "OK"}
        return self._post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})

    def export_span(self) -> requests.Response:
        """Exports a trace with one span, which has several kilobytes even when compressed."""
        now = time.time_ns()
        text = {"key": "text", "value": {"stringValue": noise(str(now), 4_000)}}
        span = {"traceId": f"{now:032x}", "spanId": f"{now % 2**64:016x}", "name": "noise", "attributes": [text]}
        times = {"startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1)}
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span | times]}]}]}
        return self._post("/v1/traces", body, {"x-mlflow-experiment-id": self._experiment, _HEADER: self.name})

    def _post(self, path: str, body: dict, headers: dict[str, str] | None = None) -> requests.Response:
        headers = {_HEADER: self.name} if headers is None else headers
        return requests.post(self._url + path, json=body, headers=headers, auth=SigV4(), timeout=_SECONDS)


@contextmanager
def _workspaces(world: Deployment) -> Iterator[None]:
    """Enables workspaces in the stack, and disables them at the end, as all other tests require."""
    try:
        _deployed(world, "on")
        yield
    finally:
        _deployed(world, "off")


def _deployed(world: Deployment, workspaces: str) -> None:
    done = deploy_by_command(world.account.emulator, world.account.directory, "--parameters", f"Workspaces={workspaces}")
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert world.stack.parameters["Workspaces"] == workspaces
