"""Tests the stock client in two workspaces: each has entities of all kinds, and none of
the other.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm
from tests.support.processes import child_environment
from tests.support.servers import ServerlessMlflow
from tests.workspaces.world import start_ours

pytestmark = pytest.mark.xdist_group("clients in workspaces")

_REPOSITORY = Path(__file__).resolve().parents[2]
_SECONDS = 400

#: Common beginning of the programs: a function that returns an error's code and message.
_SAID = """
import mlflow
def said(function, *arguments, **named):
    try:
        return repr(function(*arguments, **named))
    except mlflow.MlflowException as error:
        return f"{error.error_code}: {error}"
"""
#: Creates, reads, updates and deletes workspaces with MLflow's functions.
_MANAGE = _SAID + """
from mlflow.entities.workspace import TraceArchivalConfig
made = mlflow.create_workspace("managed", description="d", trace_archival_config=TraceArchivalConfig(location="s3://b/x", retention="3d"))
assert (made.name, made.description, made.trace_archival_retention) == ("managed", "d", "3d"), made
assert [w.name for w in mlflow.list_workspaces()] == ["default", "managed"]
assert mlflow.update_workspace("managed", description="e", default_artifact_root="s3://b/y").description == "e"
assert mlflow.get_workspace("managed").default_artifact_root == "s3://b/y"
assert said(mlflow.create_workspace, "managed").startswith("RESOURCE_ALREADY_EXISTS: ")
mlflow.set_workspace("managed")
mlflow.create_experiment("kept")
mlflow.set_workspace(None)
assert mlflow.get_experiment_by_name("kept") is None
assert said(mlflow.delete_workspace, "managed", mode="OTHER").startswith("INVALID_PARAMETER_VALUE: ")
# As in MLflow, INVALID_STATE has the status 500, for which the client does not read the message.
assert "too many 500 error responses" in said(mlflow.delete_workspace, "managed"), said(mlflow.delete_workspace, "managed")
mlflow.delete_workspace("managed", mode="SET_DEFAULT")
assert mlflow.get_experiment_by_name("kept").artifact_location.startswith("s3://b/y/")
assert [w.name for w in mlflow.list_workspaces()] == ["default"]
for function in (mlflow.get_workspace, mlflow.delete_workspace):
    assert said(function, "managed").startswith("RESOURCE_DOES_NOT_EXIST: "), function
mlflow.set_workspace("managed")
assert "Workspace 'managed' not found" in said(mlflow.set_experiment, "x")
print("done")
"""
#: Uses workspaces on a server that does not have them.
_WITHOUT = _SAID + """
refused = "Active workspace 'team-a' cannot be used because the remote server does not support workspaces"
assert mlflow.set_experiment("x").name == "x"
mlflow.set_workspace("team-a")
client = mlflow.MlflowClient()
for function, arguments in ((mlflow.set_experiment, ["y"]), (client.search_experiments, []), (client.create_registered_model, ["m"]), (mlflow.start_run, [])):
    answer = said(function, *arguments)
    assert answer.startswith("FEATURE_DISABLED: ") and refused in answer, answer
mlflow.set_workspace(None)
assert [found.name for found in mlflow.search_experiments()] == ["x", "Default"]
assert "failed with" in said(mlflow.list_workspaces), said(mlflow.list_workspaces)
print("done")
"""


@dataclass
class Site:
    """A server, and programs that use it."""

    url: str
    directory: Path

    def run(self, *program: str, workspace: str | None = None) -> str:
        """Runs a program with the client, and returns its output. The workspace is set in the
        environment.
        """
        named = {} if workspace is None else {"MLFLOW_WORKSPACE": workspace}
        # Disables retries. Clients would retry refusals with status 500 for minutes.
        named["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
        settings = child_environment(
            MLFLOW_TRACKING_URI=self.url, MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true", PYTHONPATH=str(_REPOSITORY), **named
        )
        done = warm.run(program, settings, self.directory, _SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tour(self, *arguments: str, workspace: str | None = None) -> dict[str, Any]:
        """Runs `tour.py`, and returns the JSON that it prints."""
        return json.loads(self.run("-m", "tests.workspaces.tour", *arguments, workspace=workspace).splitlines()[-1])


def _site(server: ServerlessMlflow, directory: Path) -> Iterator[Site]:
    try:
        yield Site(server.url, directory)
    finally:
        server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    yield from _site(start_ours(tmp_path / "server"), tmp_path)


@pytest.fixture
def without(tmp_path: Path) -> Iterator[Site]:
    """Yields a server without workspaces."""
    yield from _site(start_ours(tmp_path / "server", workspaces=False), tmp_path)


#: Pairs of a workspace, and the other workspace whose entities it requests. In `make test`, neither
#: of the two is set within a program, because test_workspaces_are_managed does that.
_TWO = (("default", "team-b"), ("team-b", "default"))
_THREE = (("team-a", "team-b"), ("default", "team-a"), ("team-b", "default"))


@pytest.mark.parametrize("looks", [pytest.param(_TWO, id="two"), pytest.param(_THREE, id="three", marks=pytest.mark.slow)])
def test_workspaces_have_everything_and_nothing_of_the_other(looks: Sequence[tuple[str, str]], site: Site) -> None:
    site.run("-c", "import mlflow\nfor name in ('team-a', 'team-b'): mlflow.create_workspace(name)")
    # One workspace is set in the program, one in the environment, and one is the default.
    said: dict[str, tuple[list[str], str | None]] = {"team-a": (["--set", "team-a"], None), "team-b": ([], "team-b"), "default": ([], None)}
    made = {team: site.tour("make", team, *said[team][0], workspace=said[team][1]) for team, _ in looks}
    for team, seen in made.items():
        ids = seen.pop("ids")
        below = "" if team == "default" else f"workspaces/{team}/"
        assert ids["artifacts"] == f"mlflow-artifacts:/{below}{ids['experiment']}/{ids['run']}/artifacts"
        assert seen == {
            "params": {"team": team},
            "history": [1.0, 0.5, 0.25],
            "notes": f"of {team}",
            "files": ["notes/notes.txt"],
            "prediction": ["abab"],
            "logged": ["xx"],
            "spans": [team],
            "experiments": ["Default", "quickstart"] if team == "default" else ["quickstart"],
            "runs": [team],
            "logged models": ["model"],
            "traces": [team],
            "models": ["shared"],
            "versions": [ids["run"]],
            "prompts": ["greeting"],
            "prompt": f"Hello {team}",
            "datasets": ["questions"],
        }
        seen["ids"] = ids
    absent = "RESOURCE_DOES_NOT_EXIST"
    for team, other in looks:
        seen = site.tour("look", json.dumps(made[other]["ids"]), workspace=None if team == "default" else team)
        assert seen == {
            # Artifacts of the default workspace are not in a workspace's directory, so the path
            # refers to an experiment that does not exist in this workspace.
            "file": "status 404" if other == "default" else "status 400",
            **dict.fromkeys(("experiment", "run", "write", "model", "files", "dataset"), absent),
            **dict.fromkeys(("runs", "traces"), "[]"),
            "trace": "None",
        }


def test_workspaces_are_managed(site: Site) -> None:
    assert site.run("-c", _MANAGE) == "done\n"


def test_a_server_without_workspaces_is_known_as_such(without: Site) -> None:
    assert without.run("-c", _WITHOUT).endswith("done\n")
