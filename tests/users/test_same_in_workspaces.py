"""Compares the routes of users and roles in a workspace with MLflow's server, for each kind of
caller.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.users.test_same_rows import _shown
from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both

pytestmark = pytest.mark.xdist_group("users in workspaces")

TEAM = "team"
#: The callers: an administrator of the server, an administrator of the workspace, a member who owns
#: entities, a user with MANAGE on these entities but no role, another member, and an administrator
#: of another workspace, who has no rights in this one.
CALLERS = [ADMIN, "head", "owner", "manager", "member", "stranger"]


class Asked(NamedTuple):
    """A request, and the requests with which an administrator reverts it."""

    method: str
    path: str
    content: dict[str, Any] = {}
    undo: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    workspace: str | None = TEAM


def _granted(kind: str, resource: str, level: str = "READ") -> dict[str, Any]:
    return {"username": "target", "resource_type": kind, "resource_id": resource, "permission": level}


def _revoked(kind: str, resource: str) -> dict[str, Any]:
    return {"username": "target", "resource_type": kind, "resource_id": resource}


GRANT, REVOKE = f"{V3}/users/permissions/grant", f"{V3}/users/permissions/revoke"
RESOURCES = [
    *(("experiment", "$x"), ("registered_model", "m"), ("scorer", "$x/s"), ("prompt", "p")),
    *(("experiment", "$elsewhere"), ("experiment", "999999"), ("registered_model", "nothing"), ("experiment", "*"), ("run", "*"), ("workspace", "*")),
]


def _grants() -> Iterator[Asked]:
    for kind, resource in RESOURCES:
        yield Asked("POST", GRANT, _granted(kind, resource), (("POST", REVOKE, _revoked(kind, resource)),))
        yield Asked("GET", f"{V3}/users/permissions/get", _revoked(kind, resource))
    for kind, resource in RESOURCES[:3]:
        # An administrator restores the grant, so that every caller has a grant to revoke.
        again = (("POST", GRANT, _granted(kind, resource)),)
        yield Asked("POST", REVOKE, _revoked(kind, resource), again)
    yield Asked("POST", GRANT, {**_granted("experiment", "$x"), "username": "nobody"})
    yield Asked("POST", GRANT, _granted("experiment", "$x"), (("POST", REVOKE, _revoked("experiment", "$x")),), workspace=None)
    yield Asked("POST", GRANT, _granted("experiment", "$x"), (("POST", REVOKE, _revoked("experiment", "$x")),), workspace="other")


def _users() -> Iterator[Asked]:
    made = {"username": "made", "password": PASSWORD}
    yield Asked("POST", f"{V2}/users/create", made, (("DELETE", f"{V2}/users/delete", {"username": "made"}),))
    for user in ("target", "member", "nobody"):
        named = {"username": user}
        yield Asked("GET", f"{V2}/users/get", named)
        yield Asked("GET", f"{V3}/users/permissions/list", named)
        yield Asked("GET", f"{V3}/users/roles/list", named)
    yield Asked("GET", f"{V2}/users/list")
    yield Asked("GET", f"{V2}/users/list", workspace="other")
    yield Asked("GET", f"{V2}/users/current")
    yield Asked("GET", f"{V3}/users/current/permissions")
    changed = {"username": "target", "password": f"{PASSWORD} again"}
    yield Asked("PATCH", f"{V2}/users/update-password", changed, (("PATCH", f"{V2}/users/update-password", {**changed, "password": PASSWORD}),))
    yield Asked("PATCH", f"{V2}/users/update-admin", {"username": "target", "is_admin": False})
    yield Asked("DELETE", f"{V2}/users/delete", {"username": "nobody"})


def _roles() -> Iterator[Asked]:
    role = {"role_id": "$role"}
    for workspace in (TEAM, "other", "default"):
        new = {"name": "new", "workspace": workspace}
        yield Asked("POST", f"{V3}/roles/create", new, (("DELETE", f"{V3}/roles/delete", {"role_id": "$made"}),))
    for path in ("roles/get", "roles/permissions/list", "roles/users/list"):
        for named in ("$role", "$foreign", "999999"):
            yield Asked("GET", f"{V3}/{path}", {"role_id": named})
        yield Asked("GET", f"{V3}/{path}", role, workspace=None)
    for listed in ({"workspace": TEAM}, {"workspace": "other"}, {"workspace": [TEAM, "other"]}, {}):
        yield Asked("GET", f"{V3}/roles/list", listed)
    yield Asked("PATCH", f"{V3}/roles/update", {**role, "description": "d"})
    yield Asked("PATCH", f"{V3}/roles/update", {"role_id": "$foreign", "description": "d"})
    permission = {**role, "resource_type": "run", "resource_pattern": "*", "permission": "READ"}
    yield Asked("POST", f"{V3}/roles/permissions/add", permission, (("DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "$made"}),))
    yield Asked("POST", f"{V3}/roles/permissions/add", {**permission, "role_id": "$foreign"}, (("DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "$made"}),))
    # The owner of a resource may not grant it to a role, because only administrators manage roles.
    of_experiment = {**role, "resource_type": "experiment", "resource_pattern": "$x", "permission": "READ"}
    yield Asked("POST", f"{V3}/roles/permissions/add", of_experiment, (("DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "$made"}),))
    yield Asked("PATCH", f"{V3}/roles/permissions/update", {"role_permission_id": "$permission", "permission": "EDIT"})
    assigned = {**role, "username": "target"}
    yield Asked("POST", f"{V3}/roles/assign", assigned, (("DELETE", f"{V3}/roles/unassign", assigned),))
    yield Asked("DELETE", f"{V3}/roles/unassign", {**role, "username": "member"}, (("POST", f"{V3}/roles/assign", {**role, "username": "member"}),))
    foreign = {"role_id": "$foreign", "username": "target"}
    yield Asked("POST", f"{V3}/roles/assign", foreign, (("DELETE", f"{V3}/roles/unassign", foreign),))
    yield Asked("DELETE", f"{V3}/roles/delete", {"role_id": "999999"})
    yield Asked("DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "999999"})
    yield Asked("GET", f"{V3}/roles/get", {"role_id": "$foreign"}, workspace=None)


_SHARED = "in MLflow, only administrators of the server can share a prompt; here, users with MANAGE on the prompt can, too"
#: Accepted differences: patterns for callers and requests, the statuses of MLflow and of our
#: server, and the reason.
ACCEPTED = [
    ("head|owner|manager", ".*/grant .*'prompt', 'resource_id': 'p'.*", (400, 200), _SHARED),
    ("member|stranger", ".*/grant .*'prompt', 'resource_id': 'p'.*", (400, 403), _SHARED),
    ("manager", ".*/roles/(get|permissions/list|list) .*", (200, 403), "MLflow stores direct grants as a role of the user; here, a direct grant does not make the user a member"),
    (".*", ".*/permissions/get .*'prompt', 'resource_id': 'p'.*", (403, 400), "requests that cannot succeed for any caller are rejected before they are authorized"),
]


def _furnish(server: Server) -> None:
    def done(user: str, method: str, path: str, content: dict[str, Any], workspace: str | None = TEAM) -> Any:
        answer = server.ask(user, method, path, content, workspace=workspace)
        assert answer.status_code < 300, f"{user} {path} {content}: {answer.status_code} {answer.text}"
        return answer.json()

    for name in (TEAM, "other"):
        done(ADMIN, "POST", f"{V3}/workspaces", {"name": name}, None)
    for name in (*CALLERS[1:], "target"):
        done(ADMIN, "POST", f"{V2}/users/create", {"username": name, "password": PASSWORD}, None)
    roles = {}
    for workspace in (TEAM, "other"):
        for role in done(ADMIN, "GET", f"{V3}/roles/list", {"workspace": workspace}, None)["roles"]:
            roles[workspace, role["name"]] = role["id"]
    for user, of in (("head", (TEAM, "admin")), ("owner", (TEAM, "user")), ("member", (TEAM, "user")), ("stranger", ("other", "admin"))):
        done(ADMIN, "POST", f"{V3}/roles/assign", {"username": user, "role_id": roles[of]}, None)
    for name, workspace in (("role", TEAM), ("foreign", "other")):
        made = done(ADMIN, "POST", f"{V3}/roles/create", {"name": name, "workspace": workspace}, None)
        server.ids[name] = str(made["role"]["id"])
    permission = {"role_id": "$role", "resource_type": "trace", "resource_pattern": "*", "permission": "READ"}
    server.ids["permission"] = str(done(ADMIN, "POST", f"{V3}/roles/permissions/add", permission)["role_permission"]["id"])
    done(ADMIN, "POST", f"{V3}/roles/assign", {"username": "member", "role_id": "$role"}, None)
    server.ids["x"] = str(done("owner", "POST", f"{V2}/experiments/create", {"name": "x"})["experiment_id"])
    server.ids["elsewhere"] = str(done(ADMIN, "POST", f"{V2}/experiments/create", {"name": "y"}, "other")["experiment_id"])
    done("owner", "POST", f"{V2}/registered-models/create", {"name": "m"})
    done("owner", "POST", f"{V2}/registered-models/create", {"name": "p", "tags": [{"key": "mlflow.prompt.is_prompt", "value": "true"}]})
    done("owner", "POST", f"{V3}/scorers/register", {"experiment_id": "$x", "name": "s", "serialized_scorer": '{"instructions_judge_pydantic_data": {}}'})
    for kind, resource in (("experiment", "$x"), ("registered_model", "m"), ("scorer", "$x/s"), ("prompt", "p")):
        done(ADMIN, "POST", GRANT, {**_granted(kind, resource, "MANAGE"), "username": "manager"})


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("workspaces"), "NO_PERMISSIONS", workspaces=True) as pair:
        for server in pair:
            _furnish(server)
        yield pair


def _answered(server: Server, caller: str, asked: Asked) -> tuple[int, Any]:
    answer = server.ask(caller, asked.method, asked.path, asked.content, "query" if asked.method == "GET" else "body", asked.workspace)
    body = answer.json() if "json" in answer.headers.get("content-type", "") else answer.text
    if answer.status_code == 200:
        for field in ("role", "role_permission"):
            if isinstance(body, dict) and field in body:
                server.ids["made"] = str(body[field]["id"])
        for method, path, content in asked.undo:
            undone = server.ask(ADMIN, method, path, content, "body", asked.workspace)
            assert undone.status_code == 200, f"{path} {content}: {undone.text}"
    return answer.status_code, body


@pytest.mark.parametrize("about", ["users", "grants", "roles"])
def test_answers_are_the_same(about: str, servers: tuple[Server, Server]) -> None:
    if about == "grants":
        for server in servers:
            for kind, resource in RESOURCES[:3]:
                server.ask(ADMIN, "POST", REVOKE, _revoked(kind, resource), workspace=TEAM)
    different = []
    for asked in {"users": _users, "grants": _grants, "roles": _roles}[about]():
        is_revoking = asked.path == REVOKE
        for caller in CALLERS:
            if is_revoking:
                for server in servers:
                    server.ask(ADMIN, "POST", GRANT, {**asked.content, "permission": "READ"}, workspace=TEAM)
            stock, ours = (_answered(server, caller, asked) for server in servers)
            if is_revoking:
                for server in servers:
                    server.ask(ADMIN, "POST", REVOKE, asked.content, workspace=TEAM)
            said = f"{asked.workspace} {asked.method} {asked.path} {asked.content}"
            is_accepted = any(
                re.fullmatch(callers, caller) and re.fullmatch(request, said) and statuses == (stock[0], ours[0]) for callers, request, statuses, _ in ACCEPTED
            )
            is_same = stock[0] == ours[0] and (asked.method != "GET" or stock[0] != 200 or _shown(stock[1]) == _shown(ours[1]))
            if not is_same and not is_accepted:
                different.append(f"{caller}: {said}:\n    stock {stock[0]} {_shown(stock[1])}\n    ours  {ours[0]} {_shown(ours[1])}")
    assert not different, f"{len(different)}:\n" + "\n".join(different)


def test_who_manages_something_shares_it(servers: tuple[Server, Server]) -> None:
    for server in servers:
        get = (f"{V2}/experiments/get", {"experiment_id": "$x"})
        assert server.ask("target", "GET", *get, workspace=TEAM).status_code == 403
        assert server.ask("manager", "POST", GRANT, _granted("experiment", "$x"), workspace=TEAM).status_code == 200
        assert server.ask("target", "GET", *get, workspace=TEAM).status_code == 200
        assert server.ask("manager", "POST", REVOKE, _revoked("experiment", "$x"), workspace=TEAM).status_code == 200
        assert server.ask("target", "GET", *get, workspace=TEAM).status_code == 403


def test_what_is_the_servers_is_for_its_administrators(servers: tuple[Server, Server]) -> None:
    """Checks that only administrators can read the request counters, which MLflow shows to every
    client.
    """
    _, ours = servers
    for caller in CALLERS:
        for workspace in (None, TEAM):
            assert ours.ask(caller, "GET", "/metrics", workspace=workspace).status_code == (200 if caller == ADMIN else 403), caller
