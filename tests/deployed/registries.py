"""Steps that use label schemas, review queues, issues, MCP servers and skills, which only the client
of MLflow 3.18 supports.
"""

import gzip
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import requests
from mlflow_serverless_auth import SigV4

from tests.support.http_server import Answer
from tests.support.next_release import next_release
from tests.support.processes import child_environment

from .emulator import REPOSITORY
from .rare import housekeeping
from .signed import done, expect
from .steps import PASSWORD, noise, token_of
from .wire import Call, processes

_SECONDS = 300
_V2 = "/api/2.0/mlflow"
_V3 = "/api/3.0/mlflow"
_SERVERS = f"{_V3}/mcp-servers"
_SKILLS = f"{_V3}/skills"
_MANIFEST = b"---\nname: review\ndescription: Reviews code.\n---\n"
_FILES = {"SKILL.md": _MANIFEST, "docs/a.md": b"a", "docs/b.md": b"b"}


def everything_of_the_next_client(world, directory: Path) -> None:
    """Uses label schemas, review queues, issues, MCP servers and skills with the client of 3.18, which
    signs.
    """
    signs = world.caller.environment | {"MLFLOW_TRACKING_AUTH": "mlflow-serverless"}
    _run(directory, signs, REPOSITORY / "tests/client/next_client_program.py", world.signed, str(directory))


def registrations_of_a_user(world, directory: Path) -> None:
    """Registers, loads and deletes an MCP server and a skill with the client of 3.18 and a token.
    Another user has no access to them.
    """
    for name in ("cora", "dan"):
        new = {"username": name, "password": PASSWORD}
        answer = requests.post(f"{world.users}{_V2}/users/create", json=new, auth=("admin", PASSWORD), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text

    def statuses(user: str) -> list[int]:
        paths = (f"{_SERVERS}/com.example/coras", f"{_SKILLS}/@cora/review")
        return [requests.get(f"{world.users}{path}", auth=(user, PASSWORD), timeout=_SECONDS).status_code for path in paths]

    token = {"MLFLOW_TRACKING_URI": world.users, "MLFLOW_TRACKING_TOKEN": token_of(world, "cora")}
    _write(directory / "skill", _FILES)
    program = Path(__file__).parent / "clients/registrations.py"
    _run(directory, token, program, "register", str(directory / "skill"))
    assert (statuses("cora"), statuses("dan")) == ([200, 200], [403, 403])
    _run(directory, token, program, "load", str(directory / "skill"))
    _run(directory, token, program, "delete")
    assert statuses("admin") == [404, 404]


def large_versions_of_an_mcp_server(world, directory: Path) -> None:
    """Registers versions that do not fit into one item, changes one, and deletes the server."""
    server = f"{_SERVERS}/com.example/large"
    tools = {version: [_large_tool(version)] for version in ("1.0.0", "1.1.0")}
    for version, declared in tools.items():
        content = {"name": "com.example/large", "version": version}
        done(world, "POST", f"{server}/versions", {"server_json": content, "tools": declared})
    tools["1.0.0"] = [_large_tool("changed")]
    done(world, "PATCH", f"{server}/versions/1.0.0", {"tools": tools["1.0.0"]})
    found = done(world, "GET", f"{server}/versions")["mcp_server_versions"]
    assert {one["version"]: [tool["inputSchema"] for tool in one["tools"]] for one in found} == {
        version: [tool["inputSchema"] for tool in declared] for version, declared in tools.items()
    }
    new = {"url": "https://mcp.example.com/", "transport_type": "streamable-http", "server_version": "1.0.0"}
    endpoint = done(world, "POST", f"{server}/endpoints", new)
    [shown] = done(world, "GET", f"{_SERVERS}/endpoints")["mcp_access_endpoints"]
    assert shown["id"] == endpoint["id"]
    done(world, "DELETE", server)
    expect(world, 404, "GET", f"{server}/versions/1.0.0")


def an_upload_that_the_bucket_refuses(world, directory: Path) -> None:
    """Refuses a single file of a skill. The function deletes the other files, and registers nothing."""

    def refuse(call: Call, answer: Answer) -> Answer:
        is_refused = call.action == "s3:PutObject" and call.resource.endswith("/docs/b.md")
        return (403, [("Content-Type", "application/xml")], b"<Error><Code>AccessDenied</Code></Error>") if is_refused else answer

    with world.account.wire.interfering(refuse):
        assert _upload(world, "refused").status_code == 500
    expect(world, 404, "GET", f"{_SKILLS}/refused")
    assert _stored(world, "refused") == []


def an_upload_that_ends_with_its_process(world, directory: Path) -> None:
    """Ends the process of the function when it has stored a file of a skill. The housekeeper deletes
    what was stored, an hour later. A second upload is not affected.
    """
    killed = []

    def kill(call: Call, answer: Answer) -> Answer:
        if call.action == "s3:PutObject" and not killed:
            killed.extend(processes(f"{world.stack.name}-skills", world.account.s3))
            for process in killed:
                os.kill(process, signal.SIGKILL)
        return answer

    with world.account.wire.interfering(kill):
        assert _upload(world, "interrupted").status_code == 500
    assert killed
    expect(world, 404, "GET", f"{_SKILLS}/interrupted")
    assert _stored(world, "interrupted")
    [(key, path)] = _unfinished_uploads(world, "interrupted")

    assert _upload(world, "interrupted").status_code == 200
    assert housekeeping(world) == {"is_done": True}
    # The upload could still be in progress.
    assert [below for _, below in _unfinished_uploads(world, "interrupted")] == [path]
    began = {"N": str(int((time.time() - 3_700) * 1000))}
    update = {"UpdateExpression": "SET created = :began", "ExpressionAttributeValues": {":began": began}}
    world.account.emulator.dynamodb.update_item(TableName=world.stack.outputs["TableName"], Key=key, **update)
    assert housekeeping(world) == {"is_done": True}
    assert _unfinished_uploads(world, "interrupted") == []
    left = _stored(world, "interrupted")
    assert len(left) == len(_FILES) and not any(key.startswith(f"{path}/") for key in left), left

    done(world, "DELETE", f"{_SKILLS}/interrupted")
    assert _stored(world, "interrupted") == []


def registrations_in_a_workspace(url: str) -> None:
    """Creates a workspace with an MCP server, a skill and a webhook, on a stack with workspaces, and
    deletes the workspace. The server and the skill move to the default workspace.
    """

    def send(method: str, path: str, workspace: str = "default", body: dict | None = None) -> int:
        headers = {"X-MLFLOW-WORKSPACE": workspace}
        return requests.request(method, f"{url}{path}", json=body, headers=headers, auth=SigV4(), timeout=_SECONDS).status_code

    server, skill = {"name": "com.example/teams"}, {"name": "teams"}
    events = [{"entity": "REGISTERED_MODEL", "action": "CREATED"}]
    webhook = {"name": "deploy", "url": "http://127.0.0.1:9/", "events": events}
    assert send("POST", f"{_V3}/workspaces", body={"name": "team"}) == 201
    for path, body in [(_SERVERS, server), (_SKILLS, skill), (f"{_V2}/webhooks", webhook)]:
        assert send("POST", path, "team", body) == 200, path
    paths = [f"{_SERVERS}/{server['name']}", f"{_SKILLS}/{skill['name']}"]
    assert [send("GET", path) for path in paths] == [404, 404]
    assert send("DELETE", f"{_V3}/workspaces/team?mode=SET_DEFAULT") == 204
    assert [send("GET", path) for path in paths] == [200, 200]


#: The steps in their order. The first one finds all skills that exist.
REGISTRIES = [
    everything_of_the_next_client,
    registrations_of_a_user,
    large_versions_of_an_mcp_server,
    an_upload_that_the_bucket_refuses,
    an_upload_that_ends_with_its_process,
]


def _run(directory: Path, settings: dict[str, str], program: Path, *arguments: str) -> None:
    """Runs a program with the client of 3.18."""
    environment = child_environment(PYTHONPATH=str(next_release()), **settings)
    command = [sys.executable, str(program), *arguments]
    process = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    assert process.returncode == 0, process.stdout + process.stderr


def _large_tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "description": noise(name, 450_000)}}


def _write(directory: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)


def _upload(world, skill: str) -> requests.Response:
    """Uploads the content of a skill, without retries."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in _FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    form = {"metadata": (None, "{}"), "content": ("content.tar.gz", gzip.compress(packed.getvalue()))}
    return requests.post(f"{world.signed}{_SKILLS}/{skill}/versions", files=form, auth=SigV4(), timeout=_SECONDS)


def _stored(world, skill: str) -> list[str]:
    """Returns the keys of the files of a skill."""
    bucket = world.stack.outputs["BucketName"]
    found = world.account.emulator.s3.list_objects_v2(Bucket=bucket, Prefix=f"skills/{skill}/")
    return [one["Key"] for one in found.get("Contents", [])]


def _unfinished_uploads(world, skill: str) -> list[tuple[dict[str, Any], str]]:
    """Returns the keys of the rows of a skill's uploads that were not completed, and the directories of
    their files.
    """
    found = world.account.emulator.dynamodb.query(
        TableName=world.stack.outputs["TableName"],
        KeyConditionExpression="PK = :removal AND begins_with(SK, :upload)",
        FilterExpression="attribute_not_exists(#ttl) AND begins_with(content_path, :directory)",
        ExpressionAttributeNames={"#ttl": "ttl"},
        ExpressionAttributeValues={":removal": {"S": "REMOVAL"}, ":upload": {"S": "SU#"}, ":directory": {"S": f"skills/{skill}/"}},
    )
    return [({name: item[name] for name in ("PK", "SK")}, item["content_path"]["S"]) for item in found["Items"]]
