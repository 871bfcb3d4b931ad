"""Tests that the uploaded content of skills follows its workspace: it can be read after the workspace
was deleted and the skill moved, and it is deleted together with the workspace.
"""

import gzip
import io
import json
import subprocess
import tarfile
from pathlib import Path

from tests.support.http import Answer, Request, Side
from tests.support.servers import binary
from tests.workspaces.world import HEADER, WORKSPACES, proxied, start_ours

_SKILLS = "/api/3.0/mlflow/skills"
_CONTENT = b"---\nname: review\ndescription: d\n---\n"


def _upload(side: Side, workspace: str, skill: str) -> str:
    """Uploads a skill, and returns the path of its content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("SKILL.md")
        entry.size = len(_CONTENT)
        archive.addfile(entry, io.BytesIO(_CONTENT))
    body = b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n' + json.dumps({}).encode()
    body += b'\r\n--b\r\nContent-Disposition: form-data; name="content"; filename="a"\r\n\r\n'
    body += gzip.compress(packed.getvalue()) + b"\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b", HEADER: workspace}
    made = side.send(Request("POST", f"{_SKILLS}/{skill}/versions", {}, body, headers))
    assert made.status == 200, made
    return made.body["source"].removeprefix("mlflow-artifacts:/")


def _get(side: Side, workspace: str, path: str) -> Answer:
    return side.send(Request("GET", path, {}, None, {HEADER: workspace}))


def _content(side: Side, workspace: str, skill: str) -> str:
    """Returns the content of a skill as a client reads it: at the location in its version."""
    version = _get(side, workspace, f"{_SKILLS}/{skill}/versions/1")
    assert version.status == 200, version
    read = _get(side, workspace, proxied(f"{version.body['source'].removeprefix('mlflow-artifacts:/')}/SKILL.md"))
    assert read.status == 200, read
    return read.body


def test_content_of_skills_follows_its_workspace(tmp_path: Path) -> None:
    # Only `gc` removes anything.
    server = start_ours(tmp_path, "--no-indexer")
    side = Side("ours", server.url)
    try:
        for workspace in ("moved", "gone", "other"):
            assert side.send(Request.of_json("POST", WORKSPACES, {"name": workspace})).status == 201
            for skill in ("review", f"@acme/of-{workspace}"):
                path = _upload(side, workspace, skill)
                assert _content(side, workspace, skill) == _CONTENT.decode()
                # Neither another workspace nor the default workspace has it.
                for elsewhere in ("default", "moved" if workspace == "gone" else "gone"):
                    for given in (path, f"workspaces/{workspace}/{path}"):
                        assert _get(side, elsewhere, proxied(f"{given}/SKILL.md")).status in (400, 404), (elsewhere, given)

        # A workspace with skills is not empty.
        refused = side.send(Request("DELETE", f"{WORKSPACES}/moved"))
        assert (refused.status, refused.body["error_code"]) == (500, "INVALID_STATE")
        assert _content(side, "moved", "review") == _CONTENT.decode()

        assert side.send(Request("DELETE", f"{WORKSPACES}/moved?mode=SET_DEFAULT")).status == 204
        for skill in ("review", "@acme/of-moved"):
            assert _content(side, "default", skill) == _CONTENT.decode()
        # The content of a skill that has moved is deleted with it.
        assert side.send(Request("DELETE", f"{_SKILLS}/@acme/of-moved")).status == 200
        assert _files(tmp_path, "moved") == ["review"]

        assert side.send(Request("DELETE", f"{WORKSPACES}/gone?mode=CASCADE")).status == 204
        assert _get(side, "gone", f"{_SKILLS}/review").status == 404
    finally:
        server.stop()
    assert _files(tmp_path, "gone") == ["of-gone", "review"]
    done = subprocess.run([str(binary()), "gc", "--data", str(tmp_path / "data")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert _files(tmp_path, "gone") == []
    assert (_files(tmp_path, "moved"), _files(tmp_path, "other")) == (["review"], ["of-other", "review"])


def _files(directory: Path, workspace: str) -> list[str]:
    """Returns the names of the skills whose content is in the directory of a workspace."""
    below = directory / "data/artifacts/workspaces" / workspace
    return sorted(path.parent.parent.name for path in below.rglob("SKILL.md"))
