"""Tests that `gc` and `reindex` process every workspace, and that `gc` removes the contents of a
deleted workspace.
"""

import subprocess
import time
from pathlib import Path

from tests.support.http import Request, Side
from tests.support.servers import binary
from tests.workspaces.world import HEADER, V2, V3, WORKSPACES, proxied, start_ours


def _command(directory: Path, *words: str) -> str:
    done = subprocess.run([str(binary()), *words, "--data", str(directory / "data")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _post(side: Side, workspace: str, path: str, body: dict) -> dict:
    answer = side.send(Request.of_json("POST", path, body, {"Content-Type": "application/json", HEADER: workspace}))
    assert answer.status in (200, 201), answer
    return answer.body


def _fill(side: Side, workspace: str) -> tuple[str, str]:
    """Creates an experiment with a deleted run, a file, a model and a dataset. Returns the ids of
    the experiment and of the deleted run.
    """
    experiment = _post(side, workspace, f"{V2}/experiments/create", {"name": "x"})["experiment_id"]
    runs = [_post(side, workspace, f"{V2}/runs/create", {"experiment_id": experiment})["run"]["info"] for _ in range(2)]
    path = runs[0]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    put = side.send(Request("PUT", proxied(f"{path}/file.txt"), {}, b"file", {HEADER: workspace}))
    assert put.status == 200, put
    _post(side, workspace, f"{V2}/runs/delete", {"run_id": runs[0]["run_id"]})
    _post(side, workspace, f"{V2}/registered-models/create", {"name": "m"})
    version = {"name": "m", "source": "s3://elsewhere/x", "run_id": runs[1]["run_id"]}
    _post(side, workspace, f"{V2}/model-versions/create", version)
    _post(side, workspace, f"{V3}/datasets/create", {"name": "d", "experiment_ids": [experiment]})
    return experiment, runs[0]["run_id"]


def _files(directory: Path, experiment: str) -> list[Path]:
    return [path for path in (directory / "data/artifacts/workspaces").rglob(f"{experiment}/**/*.txt")]


def test_what_was_deleted_is_removed_in_every_workspace(tmp_path: Path) -> None:
    server = start_ours(tmp_path)
    side = Side("ours", server.url)
    try:
        _post(side, "", WORKSPACES, {"name": "team-a"})
        _post(side, "", WORKSPACES, {"name": "team-b"})
        (kept, run), (gone, _) = _fill(side, "team-a"), _fill(side, "team-b")
        assert _files(tmp_path, kept) and _files(tmp_path, gone)
        assert side.send(Request("DELETE", f"{WORKSPACES}/team-b?mode=CASCADE")).status == 204
    finally:
        server.stop()
    said = _command(tmp_path, "gc", "--dry-run")
    assert run in said and gone in said, said
    said = _command(tmp_path, "gc", "--expired")
    assert _files(tmp_path, gone), said
    _command(tmp_path, "gc")
    assert not _files(tmp_path, kept) and not _files(tmp_path, gone)
    # A second run finds nothing.
    assert gone not in _command(tmp_path, "gc", "--dry-run")
    _command(tmp_path, "reindex")
    server = start_ours(tmp_path)
    side = Side("ours", server.url)
    try:
        names = [one["name"] for one in side.send(Request("GET", WORKSPACES)).body["workspaces"]]
        assert names == ["default", "team-a"]
        found = _post(side, "team-a", f"{V2}/runs/search", {"experiment_ids": [kept], "run_view_type": "ALL"})
        assert [row["info"]["run_id"] for row in found["runs"]] != [run] and len(found["runs"]) == 1
        versions = side.send(Request("GET", f"{V2}/model-versions/search", {}, None, {HEADER: "team-a"})).body
        assert len(versions["model_versions"]) == 1
        # The command runs while a server uses the same data.
        assert "team-a" in _command(tmp_path, "workspace", "list")
    finally:
        server.stop()


def test_a_quota_holds_within_a_minute(tmp_path: Path) -> None:
    server = start_ours(tmp_path)
    side = Side("ours", server.url)
    try:
        _post(side, "", WORKSPACES, {"name": "team-a"})
        said = _command(tmp_path, "workspace", "quota", "team-a", "--runs", "1")
        assert "1 runs" in said
        experiment = _post(side, "team-a", f"{V2}/experiments/create", {"name": "x"})["experiment_id"]
        for _ in range(3):
            _post(side, "team-a", f"{V2}/runs/create", {"experiment_id": experiment})
        until = time.monotonic() + 30
        while "3 runs" not in _command(tmp_path, "workspace", "list"):
            assert time.monotonic() < until, "the runs were not counted"
        # A new quota applies immediately.
        _command(tmp_path, "workspace", "quota", "team-a", "--runs", "2", "--traces", "5")
        body = {"experiment_id": experiment}
        headers = {"Content-Type": "application/json", HEADER: "team-a"}
        refused = side.send(Request.of_json("POST", f"{V2}/runs/create", body, headers))
        assert (refused.status, refused.body["error_code"]) == (400, "BAD_REQUEST"), refused
        assert "quota" in refused.body["message"]
        assert "3 runs" in _command(tmp_path, "workspace", "usage", "team-a", "--days", "1")
    finally:
        server.stop()

