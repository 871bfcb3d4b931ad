"""Requests to every route, for callers who each have entities of their own where a request changes or deletes
something.

`$own` stands for a name that differs between the callers.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import requests

from tests.users.routes import AJAX2, AJAX3, Asked
from tests.users.test_same_decisions import LISTS, REQUESTS, SHOWN
from tests.users.world import ADMIN, PASSWORD, V2, V3, Server

_LEVELS = Path(__file__).resolve().parents[2] / "docs/reference/levels.md"
_MCP = f"{V3}/mcp-servers"
_MCP_ONE = f"{_MCP}/com.example%2F$own"
_SKILLS = f"{V3}/skills"
_SKILL = {"source": "https://example.com/skills.git", "ref": "main", "subpath": "a", "digest": "e3" * 32}
_ENDPOINT = {"url": "https://example.com/mcp", "server_version": "1.0.0"}
_HOOK = {
    "name": "$own", "url": "https://93.184.216.34/hook",
    "events": [{"entity": "MODEL_VERSION", "action": "CREATED"}],
}
_TAG = {"key": "k", "value": "v"}
_GRANTED = {"username": "of-$own", "resource_type": "experiment", "resource_id": "$experiment1"}
_QUERY = """{ mlflowGetRun(input: {runId: "$run1"}) { run { info { runId } } } }"""


class Visitor(Server):
    """A caller who is authenticated by the HTTP session, with the ids that placeholders stand for."""

    def visit(self, asked: Asked) -> requests.Response:
        """Sends a request. Sends its content as an HTML form if `sent` is `form`."""
        if asked.sent != "form":
            return self.ask("", asked.method, asked.path, asked.content, asked.sent)
        form, headers = self._filled(dict(asked.content)), {"origin": self.url}
        return self.session.request(asked.method, self.url + asked.path, data=form, headers=headers, timeout=120)


class Group(NamedTuple):
    """Requests in an order in which they succeed for administrators, and a function that creates the entities which
    only one caller changes and deletes.
    """

    furnish: Callable[[Server], None]
    requests: list[Asked]


def _post(server: Server, path: str, content: dict[str, Any], status: int = 200) -> None:
    answer = server.ask(ADMIN, "POST", path, content)
    assert answer.status_code == status, answer.text


def _furnish_mcp_server(server: Server) -> None:
    _post(server, f"{_MCP_ONE}/versions", _mcp_version("1.0.0"))
    for path in (_MCP_ONE, f"{_MCP_ONE}/versions/1.0.0"):
        _post(server, f"{path}/tags", _TAG)
    _post(server, f"{_MCP_ONE}/aliases", {"alias": "a", "version": "1.0.0"})
    server.make("endpoint", "POST", f"{_MCP_ONE}/endpoints", _ENDPOINT, "id")


def _furnish_skill(skill: str) -> Callable[[Server], None]:
    def furnish(server: Server) -> None:
        _post(server, f"{skill}/versions", _SKILL)
        for path in (skill, f"{skill}/versions/1"):
            _post(server, f"{path}/tags", _TAG)
        _post(server, f"{skill}/aliases", {"alias": "a", "version": 1})

    return furnish


def _furnish_webhook(server: Server) -> None:
    server.make("webhook", "POST", f"{V2}/webhooks", _HOOK, "webhook", "webhook_id")


def _furnish_user(server: Server) -> None:
    _post(server, f"{V2}/users/create", {"username": "of-$own", "password": PASSWORD})


def _furnish_role(server: Server) -> None:
    _furnish_user(server)
    server.make("role", "POST", f"{V3}/roles/create", {"name": "$own", "workspace": "default"}, "role", "id")
    granted = {"role_id": "$role", "resource_type": "run", "resource_pattern": "*", "permission": "READ"}
    server.make("permission", "POST", f"{V3}/roles/permissions/add", granted, "role_permission", "id")


def _furnish_workspace(server: Server) -> None:
    _post(server, f"{V3}/workspaces", {"name": "$own"}, 201)


def _mcp_version(version: str, status: str = "active") -> dict[str, Any]:
    return {"server_json": {"name": "com.example/$own", "version": version, "description": "d"}, "status": status}


def _registry(one: str, version: str, more: list[Asked]) -> list[Asked]:
    """Requests to an MCP server or a skill. The last one deletes it."""
    of_version = f"{one}/versions/{version}"
    return [
        Asked("GET", one),
        Asked("PATCH", one, {"description": "d"}),
        Asked("POST", f"{one}/tags", _TAG),
        Asked("DELETE", f"{one}/tags/k"),
        Asked("GET", f"{one}/versions"),
        Asked("GET", of_version),
        Asked("PATCH", of_version, {"status": "deprecated"}),
        Asked("POST", f"{of_version}/tags", _TAG),
        Asked("DELETE", f"{of_version}/tags/k"),
        Asked("POST", f"{one}/aliases", {"alias": "b", "version": version}),
        Asked("GET", f"{one}/aliases/a"),
        Asked("DELETE", f"{one}/aliases/a"),
        *more,
        Asked("DELETE", of_version),
        Asked("DELETE", one),
    ]


def _mcp_servers() -> list[Asked]:
    more = [
        Asked("POST", f"{_MCP_ONE}/versions", _mcp_version("2.0.0", "draft")),
        Asked("POST", f"{_MCP_ONE}/endpoints", _ENDPOINT),
        Asked("GET", f"{_MCP_ONE}/endpoints"),
        Asked("GET", f"{_MCP_ONE}/endpoints/$endpoint"),
        Asked("PATCH", f"{_MCP_ONE}/endpoints/$endpoint", {"transport_type": "sse"}),
        Asked("DELETE", f"{_MCP_ONE}/endpoints/$endpoint"),
    ]
    return _registry(_MCP_ONE, "1.0.0", more)


def _skills(one: str) -> list[Asked]:
    return _registry(one, "1", [Asked("POST", f"{one}/versions", _SKILL)])


def _new_entries() -> list[Asked]:
    """What a caller creates belongs to the caller, and so can be changed."""
    skill = {"name": "many-$own", **_SKILL}
    return [
        *(Asked("GET", f"{V3}/{path}") for path in ("mcp-servers", "mcp-servers/endpoints", "skills")),
        Asked("POST", f"{_SKILLS}/bulk-register", {"organization": "acme", "skills": [skill]}),
        Asked("POST", _MCP, {"name": "com.example/new-$own"}),
        Asked("PATCH", f"{_MCP}/com.example%2Fnew-$own", {"description": "d"}),
        Asked("DELETE", f"{_MCP}/com.example%2Fnew-$own"),
        Asked("POST", _SKILLS, {"name": "new-$own"}),
        Asked("PATCH", f"{_SKILLS}/new-$own", {"description": "d"}),
        Asked("DELETE", f"{_SKILLS}/new-$own"),
    ]


def _webhooks() -> list[Asked]:
    one = f"{V2}/webhooks/$webhook"
    return [
        Asked("GET", f"{V2}/webhooks"),
        Asked("POST", f"{V2}/webhooks", {**_HOOK, "name": "new-$own"}),
        Asked("GET", one),
        Asked("PATCH", one, {"status": "DISABLED"}),
        Asked("POST", f"{one}/test", {}),
        Asked("DELETE", one),
    ]


def _users() -> list[Asked]:
    users, other = f"{V3}/users", {"username": "of-$own"}
    return [
        Asked("GET", f"{V2}/users/current"),
        Asked("GET", f"{users}/current/permissions"),
        *(Asked("GET", f"{V2}/users/get", {"username": name}) for name in ("$caller", "of-$own", "missing")),
        Asked("GET", f"{V2}/users/list"),
        *(Asked("GET", f"{users}/permissions/list", {"username": name}) for name in ("$caller", "of-$own")),
        Asked("GET", f"{users}/permissions/get", _GRANTED),
        Asked("GET", f"{users}/roles/list", other),
        Asked("POST", f"{V2}/users/create", {"username": "new-$own", "password": PASSWORD}),
        Asked("POST", f"{V2}/users/create-ui", {"username": "ui-$own", "password": PASSWORD}, "form"),
        Asked("PATCH", f"{V2}/users/update-password", {**other, "password": PASSWORD}),
        Asked("PATCH", f"{V2}/users/update-password", {"username": "$caller", "password": PASSWORD, "current_password": "wrong"}),
        Asked("PATCH", f"{V2}/users/update-admin", {**other, "is_admin": False}),
        Asked("POST", f"{users}/permissions/grant", {**_GRANTED, "permission": "READ"}),
        Asked("POST", f"{users}/permissions/revoke", _GRANTED),
        Asked("DELETE", f"{V2}/users/delete", other),
    ]


def _roles() -> list[Asked]:
    roles = f"{V3}/roles"
    other, of_role = {"username": "of-$own"}, {"role_id": "$role"}
    return [
        Asked("GET", f"{roles}/get", of_role),
        Asked("GET", f"{roles}/list", {"workspace": "default"}),
        Asked("GET", f"{roles}/permissions/list", of_role),
        Asked("GET", f"{roles}/users/list", of_role),
        Asked("POST", f"{roles}/create", {"name": "new-$own", "workspace": "default"}),
        Asked("PATCH", f"{roles}/update", {**of_role, "name": "renamed-$own"}),
        Asked("POST", f"{roles}/permissions/add", {**of_role, "resource_type": "trace", "resource_pattern": "*", "permission": "READ"}),
        Asked("PATCH", f"{roles}/permissions/update", {"role_permission_id": "$permission", "permission": "EDIT"}),
        Asked("DELETE", f"{roles}/permissions/remove", {"role_permission_id": "$permission"}),
        Asked("POST", f"{roles}/assign", {**of_role, **other}),
        Asked("DELETE", f"{roles}/unassign", {**of_role, **other}),
        Asked("DELETE", f"{roles}/delete", of_role),
    ]


def _workspaces() -> list[Asked]:
    all_of_them = f"{V3}/workspaces"
    return [
        Asked("GET", all_of_them),
        Asked("POST", all_of_them, {"name": "new-$own"}),
        *(Asked("GET", f"{all_of_them}/{name}") for name in ("default", "$own")),
        Asked("PATCH", f"{all_of_them}/$own", {"description": "d"}),
        Asked("DELETE", f"{all_of_them}/$own"),
    ]


def _pages() -> list[Asked]:
    return [
        *(Asked("GET", page) for page in ("/", "/signin", "/signup", "/tokens", "/login", "/health", "/version")),
        Asked("GET", "/static-files/missing.js"),
        # Forms without the secret that a form of the page has.
        *(Asked("POST", page, {"do": "create", "name": "n"}, "form") for page in ("/signin", "/tokens", "/login")),
        Asked("POST", f"{AJAX2}/users/renew-session", sent="form"),
        # Without parameters, so that the number of logins is not limited.
        *(Asked("POST", f"/oauth/{path}", {}) for path in ("device", "token")),
        *(Asked(method, f"{AJAX3}/ui-telemetry", {}) for method in ("GET", "POST")),
        *(Asked(method, "/graphql", {"query": _QUERY}, "body") for method in ("GET", "POST")),
    ]


#: Requests that change entities of one caller only. The groups are independent of each other.
GROUPS = [
    Group(lambda _: None, _pages()),
    Group(_furnish_mcp_server, _mcp_servers()),
    *(Group(_furnish_skill(one), _skills(one)) for one in (f"{_SKILLS}/$own", f"{_SKILLS}/@acme/$own")),
    Group(lambda _: None, _new_entries()),
    Group(_furnish_webhook, _webhooks()),
    Group(_furnish_user, _users()),
    Group(_furnish_role, _roles()),
    Group(_furnish_workspace, _workspaces()),
]
OWN = [asked for group in GROUPS for asked in group.requests]
#: Requests to entities that all callers share.
SHARED = [
    *REQUESTS,
    *(Asked(*shown[:3]) for shown in SHOWN),
    *(Asked(*listed[:3]) for listed in LISTS),
]
#: Requests that undo others: those that remove something on which the response to the next caller depends.
UNDO = {"/experiments/delete": "/experiments/restore", "/runs/delete": "/runs/restore", "/remove-experiments": "/add-experiments"}


def routes() -> dict[tuple[str, str], bool]:
    """Returns the routes of the server by method and path, and whether each is open to callers who are not
    signed in.
    """
    rows = re.findall(r"^\| (\w+) \| `([^`]+)` \| (\w+)", _LEVELS.read_text(), re.MULTILINE)
    return {(method, path): no_password == "all" for method, path, no_password in rows}


def route_of(asked: Asked) -> tuple[str, str]:
    """Returns the route that a request is for."""
    path = _as_api(asked.path.split("?")[0].replace("//", "/"))
    for (method, route), pattern in _PATTERNS.items():
        if method == asked.method and pattern.fullmatch(path):
            return method, route
    raise LookupError(f"no route for {asked.method} {asked.path}")


def _as_api(path: str) -> str:
    return path.replace("/ajax-api/", "/api/")


def _pattern(path: str) -> re.Pattern[str]:
    path = re.sub(r"\{(?:artifact_path|path)\}", ".+", _as_api(path))
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", path))


#: Patterns of the routes. Those with the fewest placeholders are first.
_PATTERNS: Mapping[tuple[str, str], re.Pattern[str]] = {
    route: _pattern(route[1]) for route in sorted(routes(), key=lambda route: route[1].count("{"))
}
