"""Compares the responses of the 27 routes of basic authentication with those of MLflow's server."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both, furnish

#: Runs in one process, so that the two servers start only once.
pytestmark = pytest.mark.xdist_group("rows of users")

#: Fields with ids of roles, grants and assignments. The ids differ, because MLflow also creates a
#: role for the direct grants of each user.
_IDS = {"id", "role_id"}


#: Descriptions of seeded roles that differ. MLflow's description claims that members can read
#: everything, but its read endpoints refuse that.
_DESCRIPTIONS = {
    "Read every resource in the workspace and create new experiments and registered models; the creator-as-owner mechanism grants MANAGE on "
    "what you create, with no write or delete access to resources owned by other users.": "Create new experiments and registered models. "
    "The creator of a resource gets MANAGE on it. Resources of other users are visible only if they are granted.",
}


def _shown(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _shown(item, name) for name, item in value.items()}
    if isinstance(value, list):
        # MLflow represents the direct grants of each user as a role, and lists it for everyone who
        # has a role.
        listed = [item for item in value if key != "roles" or not _is_own(item)]
        # The order is undefined.
        return sorted((_shown(item, key) for item in listed), key=lambda item: json.dumps(item, sort_keys=True))
    if key in _IDS:
        return "an id"
    if key == "role_name" or (isinstance(value, str) and re.fullmatch(r"__user_\d+__", value)):
        return re.sub(r"\d+", "N", str(value))
    if key == "description":
        return _DESCRIPTIONS.get(value, value)
    if isinstance(value, str):
        # MLflow appends the database's error, and ids of experiments differ between the servers.
        value = value.split(" Error: (")[0]
        return re.sub(r"\d+", "N", value) if key in {"resource_pattern", "message"} else value
    return value


def _is_own(role: dict[str, Any]) -> bool:
    return re.fullmatch(r"__user_\d+__", role["name"]) is not None


def _answer(server: Server, request: tuple) -> Any:
    answer = server.ask(*request)
    kind = answer.headers.get("content-type", "").split(";")[0]
    # MLflow 3.17.2 has no skills.
    text = answer.text.replace("'scorer_version', 'skill', 'trace'", "'scorer_version', 'trace'")
    body = _shown(json.loads(text)) if kind == "application/json" else text
    return answer.status_code, kind, body, answer.headers.get("www-authenticate")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("rows"), "READ") as pair:
        for server in pair:
            furnish(server)
            # Creates these users for every test, regardless of the tests before it.
            for name in ("ann", "bob"):
                made = server.ask(ADMIN, "POST", f"{V2}/users/create", _user(name, password=PASSWORD))
                assert made.status_code == 200, made.text
        yield pair


def _user(name: str, **more: Any) -> dict[str, Any]:
    return {"username": name, **more}


def _grant(name: str, kind: str, resource: str, permission: str | None = None) -> dict[str, Any]:
    granted = _user(name, resource_type=kind, resource_id=resource)
    return granted if permission is None else {**granted, "permission": permission}


USERS = [
    ("", "GET", f"{V2}/users/current"),
    ("nobody", "GET", f"{V2}/users/current"),
    (ADMIN, "GET", f"{V2}/users/current"),
    (ADMIN, "POST", f"{V2}/users/create", _user("dora", password=PASSWORD)),
    (ADMIN, "POST", f"{V2}/users/create", _user("dora", password=PASSWORD)),
    (ADMIN, "POST", f"{V2}/users/create", _user("emil", password=PASSWORD)),
    (ADMIN, "POST", f"{V2}/users/create", _user("frank", password="short")),
    (ADMIN, "POST", f"{V2}/users/create", _user("", password=PASSWORD)),
    (ADMIN, "POST", f"{V2}/users/create", _user("frank")),
    ("dora", "POST", f"{V2}/users/create", _user("gert", password=PASSWORD)),
    ("dora", "GET", f"{V2}/users/current"),
    ("dora", "GET", f"{V2}/users/get", _user("dora")),
    ("dora", "GET", f"{V2}/users/get", _user("emil")),
    (ADMIN, "GET", f"{V2}/users/get", _user("emil")),
    (ADMIN, "GET", f"{V2}/users/get", _user("nobody")),
    (ADMIN, "GET", f"{V2}/users/get"),
    ("dora", "PATCH", f"{V2}/users/update-admin", _user("dora", is_admin=True)),
    (ADMIN, "PATCH", f"{V2}/users/update-admin", _user("nobody", is_admin=True)),
    (ADMIN, "PATCH", f"{V2}/users/update-admin", _user("emil", is_admin=True)),
    ("emil", "GET", f"{V2}/users/get", _user("dora")),
    (ADMIN, "PATCH", f"{V2}/users/update-admin", _user("emil", is_admin=False)),
    ("dora", "PATCH", f"{V2}/users/update-password", _user("dora", password=PASSWORD)),
    ("dora", "PATCH", f"{V2}/users/update-password", _user("dora", password=PASSWORD, current_password="wrong")),
    ("dora", "PATCH", f"{V2}/users/update-password", _user("dora", password=PASSWORD, current_password=PASSWORD)),
    ("dora", "PATCH", f"{V2}/users/update-password", _user("emil", password=PASSWORD)),
    (ADMIN, "PATCH", f"{V2}/users/update-password", _user("dora", password="short")),
    (ADMIN, "PATCH", f"{V2}/users/update-password", _user("dora", password=PASSWORD)),
    (ADMIN, "DELETE", f"{V2}/users/delete", _user(ADMIN)),
    ("dora", "DELETE", f"{V2}/users/delete", _user("emil")),
    (ADMIN, "DELETE", f"{V2}/users/delete", _user("nobody")),
]

GRANTS = [
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "experiment", "$experiment1", "EDIT")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "experiment", "$experiment1", "READ")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "experiment", "999999", "READ")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "run", "*", "MANAGE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "run", "7", "MANAGE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "registered_model", "model1", "USE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "prompt", "prompt1", "MANAGE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "scorer", "$experiment1/scorer1", "DENY")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "gateway_secret", "s", "READ")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "workspace", "*", "USE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "nothing", "*", "USE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "experiment", "$experiment2", "WRITE")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("ann", "experiment", "$experiment2", "NO_PERMISSIONS")),
    (ADMIN, "POST", f"{V3}/users/permissions/grant", _grant("nobody", "experiment", "$experiment2", "READ")),
    ("ann", "POST", f"{V3}/users/permissions/grant", _grant("bob", "experiment", "$experiment1", "READ")),
    ("ann", "POST", f"{V3}/users/permissions/grant", _grant("bob", "experiment", "*", "READ")),
    ("ann", "GET", f"{V3}/users/current/permissions"),
    ("ann", "GET", f"{V3}/users/permissions/list", _user("ann")),
    ("bob", "GET", f"{V3}/users/permissions/list", _user("ann")),
    (ADMIN, "GET", f"{V3}/users/permissions/list", _user("ann")),
    (ADMIN, "GET", f"{V3}/users/permissions/list", _user("nobody")),
    *(
        (ADMIN, "GET", f"{V3}/users/permissions/get", _grant("ann", kind, resource))
        for kind, resource in [
            ("experiment", "$experiment1"),
            ("experiment", "$experiment2"),
            ("experiment", "*"),
            ("run", "*"),
            ("run", "7"),
            ("registered_model", "model1"),
            ("registered_model", "model2"),
            ("prompt", "prompt1"),
            ("scorer", "$experiment1/scorer1"),
            ("scorer", "scorer1"),
            ("workspace", "*"),
            ("nothing", "*"),
        ]
    ),
    ("bob", "GET", f"{V3}/users/permissions/get", _grant("ann", "experiment", "$experiment1")),
    ("bob", "GET", f"{V3}/users/permissions/get", _grant("bob", "experiment", "$experiment1")),
    (ADMIN, "GET", f"{V3}/users/roles/list", _user("ann")),
    ("bob", "GET", f"{V3}/users/roles/list", _user("ann")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("ann", "experiment", "$experiment1")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("ann", "experiment", "$experiment1")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("ann", "experiment", "999999")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("ann", "run", "*")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("ann", "run", "*")),
    (ADMIN, "POST", f"{V3}/users/permissions/revoke", _grant("nobody", "run", "*")),
    (ADMIN, "GET", f"{V3}/users/permissions/list", _user("ann")),
]


def test_users(servers: tuple[Server, Server]) -> None:
    _same(servers, USERS)


def test_grants(servers: tuple[Server, Server]) -> None:
    _same(servers, GRANTS)


def test_roles(servers: tuple[Server, Server]) -> None:
    for server in servers:
        server.make("role", "POST", f"{V3}/roles/create", {"name": "r", "workspace": "default"}, "role", "id")
        granted = {"role_id": "$role", "resource_type": "run", "resource_pattern": "*", "permission": "READ"}
        server.make("grant", "POST", f"{V3}/roles/permissions/add", granted, "role_permission", "id")
    role = {"role_id": "$role"}
    add = {**role, "resource_type": "experiment", "resource_pattern": "$experiment1"}
    requests = [
        (ADMIN, "POST", f"{V3}/roles/create", {"name": "r", "workspace": "default"}),
        (ADMIN, "POST", f"{V3}/roles/create", {"name": " ", "workspace": "default"}),
        (ADMIN, "POST", f"{V3}/roles/create", {"name": "__user_7__", "workspace": "default"}),
        (ADMIN, "POST", f"{V3}/roles/create", {"name": "s", "workspace": "default", "description": 7}),
        (ADMIN, "POST", f"{V3}/roles/create", {"name": "s", "workspace": "default", "description": "of some"}),
        ("ann", "POST", f"{V3}/roles/create", {"name": "t", "workspace": "default"}),
        (ADMIN, "GET", f"{V3}/roles/get", role),
        (ADMIN, "GET", f"{V3}/roles/get", {"role_id": "x"}),
        (ADMIN, "GET", f"{V3}/roles/get", {"role_id": 999999}),
        (ADMIN, "PATCH", f"{V3}/roles/update", role),
        (ADMIN, "PATCH", f"{V3}/roles/update", {**role, "name": "s"}),
        (ADMIN, "PATCH", f"{V3}/roles/update", {**role, "name": "renamed", "description": "now"}),
        (ADMIN, "POST", f"{V3}/roles/permissions/add", {**add, "permission": "EDIT"}),
        (ADMIN, "POST", f"{V3}/roles/permissions/add", {**add, "permission": "READ"}),
        (ADMIN, "POST", f"{V3}/roles/permissions/add", {**add, "permission": "WRITE"}),
        (ADMIN, "POST", f"{V3}/roles/permissions/add", {**add, "permission": "READ", "resource_type": "run"}),
        (ADMIN, "POST", f"{V3}/roles/permissions/add", {**add, "permission": "READ", "role_id": 999999}),
        (ADMIN, "GET", f"{V3}/roles/permissions/list", role),
        (ADMIN, "PATCH", f"{V3}/roles/permissions/update", {"role_permission_id": "$grant", "permission": "EDIT"}),
        (ADMIN, "PATCH", f"{V3}/roles/permissions/update", {"role_permission_id": "$grant", "permission": "NO_PERMISSIONS"}),
        (ADMIN, "PATCH", f"{V3}/roles/permissions/update", {"role_permission_id": 999999, "permission": "EDIT"}),
        (ADMIN, "POST", f"{V3}/roles/assign", {**role, "username": "ann"}),
        (ADMIN, "POST", f"{V3}/roles/assign", {**role, "username": "ann"}),
        (ADMIN, "POST", f"{V3}/roles/assign", {**role, "username": "nobody"}),
        ("ann", "GET", f"{V3}/roles/get", role),
        ("bob", "GET", f"{V3}/roles/get", role),
        ("ann", "GET", f"{V3}/roles/list"),
        ("ann", "GET", f"{V3}/roles/list", {"workspace": "default"}),
        (ADMIN, "GET", f"{V3}/roles/users/list", role),
        (ADMIN, "GET", f"{V3}/roles/list", {"workspace": " "}),
        ("ann", "GET", f"{V3}/users/roles/list", {"username": "ann"}),
        (ADMIN, "DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "$grant"}),
        (ADMIN, "DELETE", f"{V3}/roles/permissions/remove", {"role_permission_id": "$grant"}),
        (ADMIN, "DELETE", f"{V3}/roles/unassign", {**role, "username": "ann"}),
        (ADMIN, "DELETE", f"{V3}/roles/unassign", {**role, "username": "ann"}),
        (ADMIN, "DELETE", f"{V3}/roles/delete", role),
        (ADMIN, "DELETE", f"{V3}/roles/delete", role),
    ]
    _same(servers, requests)


def _same(servers: tuple[Server, Server], requests: list[tuple]) -> None:
    different = []
    for request in requests:
        stock, ours = (_answer(server, request) for server in servers)
        if stock != ours:
            different.append(f"{request}\n  stock {stock}\n  ours  {ours}")
    assert not different, "\n".join(different)
