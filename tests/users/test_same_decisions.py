"""Random grants on MLflow's server and on ours: both refuse the same requests, and lists show the
same entities.

Our lists show the entities that a single read allows. If a list of MLflow shows something else,
MLflow's single read decides.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.users.routes import Asked, all_further, is_elsewhere, location
from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both, furnish, furnish_model, make_workspaces

_LEVELS = ["READ", "USE", "EDIT", "MANAGE", "DENY"]

#: Grants for a single resource: the type and the resource.
_RESOURCES = [
    *(("experiment", f"$experiment{number}") for number in (1, 2, 3)),
    ("registered_model", "model1"),
    ("registered_model", "model2"),
    ("prompt", "prompt1"),
    ("scorer", "$experiment1/scorer1"),
]
#: Types that can be granted for all resources.
_TYPES = [
    *("experiment", "registered_model", "prompt", "scorer", "run", "trace", "assessment", "logged_model"),
    *("registered_model_version", "prompt_version", "scorer_version", "review_queue"),
]


def _of_experiment(number: int) -> list[tuple[str, str, dict[str, Any]]]:
    experiment, run, model, trace = f"$experiment{number}", f"$run{number}", f"$logged{number}", f"$trace{number}"
    feedback = {"assessment_name": "a", "feedback": {"value": 1}, "source": {"source_type": "HUMAN", "source_id": "x"}}
    return [
        ("GET", f"{V2}/experiments/get", {"experiment_id": experiment}),
        ("GET", f"{V2}/experiments/get-by-name", {"experiment_name": f"experiment{number}"}),
        ("POST", f"{V2}/experiments/set-experiment-tag", {"experiment_id": experiment, "key": "k", "value": "v"}),
        ("POST", f"{V2}/experiments/delete", {"experiment_id": experiment}),
        ("POST", f"{V2}/runs/create", {"experiment_id": experiment}),
        ("GET", f"{V2}/runs/get", {"run_id": run}),
        ("POST", f"{V2}/runs/set-tag", {"run_id": run, "key": "k", "value": "v"}),
        ("POST", f"{V2}/runs/set-tag", {"run_uuid": run, "key": "k", "value": "v"}),
        ("POST", f"{V2}/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1}),
        ("POST", f"{V2}/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1, "modelId": model}),
        ("POST", f"{V2}/runs/delete", {"run_id": run}),
        ("GET", f"{V2}/metrics/get-history", {"run_id": run, "metric_key": "m"}),
        ("GET", f"{V2}/artifacts/list", {"run_id": run}),
        ("GET", f"{V2}/logged-models/{model}", {}),
        ("PATCH", f"{V2}/logged-models/{model}/tags", {"tags": [{"key": "k", "value": "v"}]}),
        ("POST", f"{V2}/logged-models", {"experiment_id": experiment, "name": "new", "source_run_id": run}),
        ("GET", f"{V3}/traces/{trace}", {}),
        ("PATCH", f"{V3}/traces/{trace}/tags", {"key": "k", "value": "v"}),
        ("POST", f"{V3}/traces/{trace}/assessments", {"assessment": feedback}),
        ("POST", f"{V3}/traces/search", {"locations": [location(experiment)]}),
        ("POST", f"{V3}/traces/search", {"locations": [location(experiment), location("$experiment1")]}),
    ]


def _of_model(name: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        ("GET", f"{V2}/registered-models/get", {"name": name}),
        ("PATCH", f"{V2}/registered-models/update", {"name": name, "description": "d"}),
        ("POST", f"{V2}/registered-models/set-tag", {"name": name, "key": "k", "value": "v"}),
        ("GET", f"{V2}/model-versions/get", {"name": name, "version": "1"}),
        ("POST", f"{V2}/model-versions/set-tag", {"name": name, "version": "1", "key": "k", "value": "v"}),
        ("POST", f"{V2}/registered-models/alias", {"name": name, "alias": "a", "version": "1"}),
        ("GET", f"{V2}/registered-models/alias", {"name": name, "alias": "a"}),
    ]


_OFTEN = [
    *(request for number in (1, 2, 3) for request in _of_experiment(number)),
    *(request for name in ("model1", "model2", "prompt1", "nothing") for request in _of_model(name)),
    ("GET", f"{V3}/scorers/get", {"experiment_id": "$experiment1", "name": "scorer1"}),
    ("GET", f"{V3}/scorers/versions", {"experiment_id": "$experiment1", "name": "scorer1"}),
    ("GET", f"{V3}/scorers/list", {"experiment_id": "$experiment1"}),
    ("GET", f"{V2}/runs/get", {"run_id": "0" * 32}),
    ("GET", f"{V3}/traces/tr-{'f' * 32}", {}),
]
REQUESTS = [*(Asked(*request) for request in _OFTEN), *all_further()]

#: Deletes a model for which there may be grants. It is the last request, because the grants of
#: roles do not apply to a new model with the same name.
_REMOVAL = ("DELETE", f"{V2}/registered-models/delete")

#: Lists: method, path, content, the field of the response, and the field of an entity's name.
LISTS = [
    ("POST", f"{V2}/experiments/search", {"max_results": 100}, "experiments", "name"),
    ("GET", f"{V2}/experiments/search", {"max_results": 100}, "experiments", "name"),
    ("GET", f"{V2}/registered-models/search", {}, "registered_models", "name"),
    ("GET", f"{V2}/registered-models/search", {"filter": "tags.`mlflow.prompt.is_prompt` = 'true'"}, "registered_models", "name"),
]


#: Single reads of an entity of a list, by the entity's name.
_SINGLE = {
    "experiments": lambda name: ("GET", f"{V2}/experiments/get-by-name", {"experiment_name": name}),
    "registered_models": lambda name: ("GET", f"{V2}/registered-models/get", {"name": name}),
}


class Shown(NamedTuple):
    """A request, and the parts of its response that are left out if they are denied.

    `single` reads the entity that a list shows. If only one of the servers shows it, MLflow's
    response to that request decides.
    """

    method: str
    path: str
    content: dict[str, Any]
    parts: list[tuple[Any, ...]]
    single: tuple[str, str, dict[str, Any]] | None = None


def _metadata(*parts: Any) -> list[tuple[Any, ...]]:
    return [(*parts, "trace_metadata", key) for key in ("mlflow.sourceRun", "mlflow.modelId")]


def _shown_of_experiment(number: int) -> list[Shown]:
    experiment, run, model, trace = f"$experiment{number}", f"$run{number}", f"$logged{number}", f"$trace{number}"
    asked = {"locations": [location(experiment)]}
    of_trace = [("trace", "trace_info", "assessments"), *_metadata("trace", "trace_info")]
    of_traces = [("traces", 0, "assessments"), *_metadata("traces", 0)]
    one_run, one_model = ("GET", f"{V2}/runs/get", {"run_id": run}), ("GET", f"{V2}/logged-models/{model}", {})
    in_experiment, by_run = {"experiment_ids": [experiment]}, f"source_run_id = '{run}'"
    found_runs = {**in_experiment, "filter": f"attributes.run_id = '{run}'"}
    return [
        Shown(*one_run, [("run", "outputs", "model_outputs")]),
        Shown("POST", f"{V2}/runs/search", found_runs, [("runs", 0), ("runs", 0, "outputs", "model_outputs")], one_run),
        Shown(*one_model, [("model", "info", "source_run_id")]),
        Shown("POST", f"{V2}/logged-models/search", in_experiment, [("models", 0), ("models", 0, "info", "source_run_id")], one_model),
        Shown("POST", f"{V2}/logged-models/search", {**in_experiment, "filter": by_run}, [("models", 0)], one_model),
        Shown("GET", f"{V3}/traces/{trace}", {}, of_trace),
        Shown("POST", f"{V3}/traces/search", asked, of_traces),
        Shown("POST", f"{V3}/traces/search", {**asked, "filter": "feedback.f = 'true'"}, [("traces", 0)]),
        Shown("POST", f"{V3}/traces/search", {**asked, "filter": f"run_id = '{run}'"}, of_traces),
        Shown("POST", f"{V3}/traces/search", {**asked, "order_by": ["run_id DESC"]}, of_traces),
        Shown("POST", f"{V3}/traces/search", {**asked, "filter": f"metadata.`mlflow.modelId` = '{model}'"}, of_traces),
        Shown("POST", f"{V3}/traces/delete-traces", {"experiment_id": experiment, "request_ids": ["tr-0"]}, []),
        Shown("GET", f"{V3}/issues/$issue{number}", {}, [("issue", "source_run_id")]),
        Shown("POST", f"{V3}/datasets/search", in_experiment, [("datasets", 0), ("datasets", 1)]),
        Shown("GET", f"{V3}/datasets/search", in_experiment, [("datasets", 0)]),
    ]


def _shown_of_model(name: str) -> list[Shown]:
    latest = ("registered_model", "latest_versions")
    return [
        Shown("GET", f"{V2}/registered-models/get", {"name": name}, [latest, (*latest, "*", "run_id")]),
        Shown("GET", f"{V2}/model-versions/get", {"name": name, "version": "1"}, [("model_version", "run_id")]),
    ]


#: Each alias is authorized separately.
_QUERY = """{
  a: mlflowGetRun(input: {runId: "$run1"}) { run { info { runId } } }
  b: mlflowGetRun(input: {runId: "$run2"}) { run { info { runId } } }
  c: mlflowGetExperiment(input: {experimentId: "$experiment1"}) { experiment { name } }
  d: mlflowGetExperiment(input: {experimentId: "$experiment2"}) { experiment { name } }
  e: mlflowGetMetricHistoryBulkInterval(input: {runIds: ["$run1", "$run2"], metricKey: "m", maxResults: 9}) { metrics { key } }
}"""
_HISTORY = ("data", "e")
_SEARCH_RUNS = """{ a: mlflowSearchRuns(input: {experimentIds: ["$experiment1"], filter: "attributes.run_id = '$run1'"}) { runs { info { runId } } } }"""
_SEARCH_VERSIONS = """{ b: mlflowSearchModelVersions(input: {filter: "name = 'model1'"}) { modelVersions { name } } }"""
_ONE_RUN = ("GET", f"{V2}/runs/get", {"run_id": "$run1"})
_ONE_MODEL = ("GET", f"{V2}/registered-models/get", {"name": "model1"})
_ONE_VERSION = ("GET", f"{V2}/model-versions/get", {"name": "model1", "version": "1"})
_ONE_SCORER = ("GET", f"{V3}/scorers/get", {"experiment_id": "$experiment1", "name": "scorer1"})

#: Requests, and the parts of their responses that are left out if they are denied.
SHOWN = [
    *(request for number in (1, 2) for request in _shown_of_experiment(number)),
    *(request for name in ("model1", "prompt1") for request in _shown_of_model(name)),
    Shown(
        *("GET", f"{V2}/registered-models/search", {"filter": "name = 'model1'"}),
        [("registered_models", 0, "latest_versions", "*", "run_id")],
        _ONE_MODEL,
    ),
    Shown("GET", f"{V2}/model-versions/search", {"filter": "name = 'model1'"}, [("model_versions", 0, "run_id")], _ONE_VERSION),
    Shown("GET", f"{V2}/model-versions/search", {"filter": "run_id = '$run1' AND name = 'model1'"}, [("model_versions", 0)], _ONE_VERSION),
    Shown("GET", f"{V3}/scorers/list", {"experiment_id": "$experiment1"}, [("scorers", 0)], _ONE_SCORER),
    Shown("GET", f"{V3}/scorers/list", {}, [("scorers", 0)], _ONE_SCORER),
    Shown("POST", "/graphql", {"query": _QUERY}, [("data", alias) for alias in ("a", "b", "c", "d", "e")]),
    Shown("POST", "/graphql", {"query": _SEARCH_RUNS}, [("data", "a", "runs", 0)], _ONE_RUN),
    Shown("POST", "/graphql", {"query": _SEARCH_VERSIONS}, [("data", "b", "modelVersions", 0)], _ONE_VERSION),
]


def _has(body: Any, parts: tuple[Any, ...]) -> bool:
    """Returns whether a body has a non-empty value at this path of keys and positions.

    `*` matches any position, because the order of latest versions is undefined.
    """
    for index, part in enumerate(parts):
        if part == "*":
            return isinstance(body, list) and any(_has(item, parts[index + 1 :]) for item in body)
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(body)


def _administer(server: Server, method: str, path: str, content: dict[str, Any]) -> dict[str, Any]:
    answer = server.ask(ADMIN, method, path, content)
    assert answer.status_code == 200, f"{path} {content}: {answer.text}"
    return answer.json()


def _granted(choice: random.Random) -> list[tuple[str, str, str]]:
    one = lambda: choice.choice([*_RESOURCES, *((kind, "*") for kind in _TYPES)])  # noqa: E731
    chosen = dict.fromkeys(one() for _ in range(choice.randint(0, 4)))
    return [(kind, resource, choice.choice(_LEVELS)) for kind, resource in chosen]


def _of_role(choice: random.Random, has_workspaces: bool) -> list[tuple[str, str, str]]:
    """Chooses the grants of a role. With workspaces, these often include one for the workspace
    itself.
    """
    of_workspace = [("workspace", "*", choice.choice(["USE", "USE", "MANAGE"]))] if has_workspaces and choice.random() < 0.5 else []
    return [*of_workspace, *_granted(choice)]


def _is_malformed(server: Server, asked: Asked, status: int) -> bool:
    """Returns whether our server rejects a request as malformed.

    In this case, it also rejects the administrator's request, because requests are validated before
    they are authorized, as the operator guide describes.
    """
    return status == 400 and server.ask(ADMIN, asked.method, asked.path, asked.content, asked.sent).status_code == 400


class _User(NamedTuple):
    """A user on both servers, whose grants are in one workspace."""

    name: str
    pair: tuple[Server, Server]
    direct: list[tuple[str, str, str]]
    roles: list[list[tuple[str, str, str]]]

    def make(self) -> None:
        for server in self.pair:
            _administer(server, "POST", f"{V2}/users/create", {"username": self.name, "password": PASSWORD})
            for kind, resource, level in self.direct:
                granted = {"username": self.name, "resource_type": kind, "resource_id": resource, "permission": level}
                _administer(server, "POST", f"{V3}/users/permissions/grant", granted)
            for index, of_role in enumerate(self.roles):
                new = {"name": f"{self.name} {index}", "workspace": server.workspace or "default"}
                role = _administer(server, "POST", f"{V3}/roles/create", new)["role"]["id"]
                for kind, pattern, level in of_role:
                    granted = {"role_id": role, "resource_type": kind, "resource_pattern": pattern, "permission": level}
                    _administer(server, "POST", f"{V3}/roles/permissions/add", granted)
                _administer(server, "POST", f"{V3}/roles/assign", {"role_id": role, "username": self.name})

    def administers(self, workspace: str | None) -> bool:
        """Returns whether the user administers a workspace, by default the one of the grants."""
        is_of_grants = workspace in (None, self.pair[0].workspace)
        return is_of_grants and any(("workspace", "*", "MANAGE") in of_role for of_role in self.roles)

    def __str__(self) -> str:
        return f"in {self.pair[0].workspace} direct {self.direct}, roles {self.roles}"


def _decision(user: _User, asked: Asked, workspace: str | None) -> Iterator[str]:
    """Yields the differences between the responses to a request. It may be sent to a different
    workspace from that of its ids.
    """
    for server in user.pair:
        if made := asked.made:
            server.make("fresh", "POST", made.path, made.content, *made.pointer)
    method, path, content = asked.method, asked.path, asked.content
    stock, ours = (server.ask(user.name, method, path, content, asked.sent, workspace) for server in user.pair)
    statuses = (stock.status_code, ours.status_code)
    # Administrators of a workspace may learn that an entity does not exist.
    is_accepted = statuses in asked.accepted or (user.administers(workspace) and statuses == (403, 404))
    if not is_accepted and (stock.status_code == 403) != (ours.status_code == 403) and not _is_malformed(user.pair[1], asked, ours.status_code):
        yield f"{method} {path} {asked.sent} {content} to {workspace}: stock {stock.status_code}, ours {ours.status_code}; {user}"
    for server, answer in zip(user.pair, (stock, ours), strict=True):
        if answer.status_code == 200 and method == "POST" and path.endswith(("experiments/delete", "runs/delete")):
            _administer(server, "POST", path.replace("delete", "restore"), content)


def _shown(user: _User, shown: Shown, workspace: str | None) -> Iterator[str]:
    """Yields the differences between the contents of the responses."""
    method, path, content, parts, single = shown
    stock, ours = (server.ask(user.name, method, path, content, "", workspace) for server in user.pair)
    said = f"{method} {path} {content} to {workspace}"
    if (stock.status_code == 403) != (ours.status_code == 403):
        yield f"{said}: stock {stock.status_code}, ours {ours.status_code}; {user}"
    elif stock.status_code == 200 and ours.status_code == 200:
        is_foreign = workspace not in (None, user.pair[0].workspace)
        for part in parts:
            # A run that does not exist has no points.
            looked_at = (*part, "metrics") if is_foreign and part == _HISTORY else part
            has = tuple(_has(answer.json(), looked_at) for answer in (stock, ours))
            if has[0] == has[1]:
                continue
            if single is None or has[1] != (user.pair[0].ask(user.name, *single, "", workspace).status_code == 200):
                yield f"{said}: {part} is there: stock {has[0]}, ours {has[1]}; {user}"


def _lists(user: _User, workspace: str | None) -> Iterator[str]:
    """Yields the differences between our lists and MLflow's.

    If they differ, our list is compared to the entities that MLflow's single reads allow.
    """
    for method, path, content, field, name in LISTS:
        def listed(by: str, server: Server) -> list[str]:
            rows = server.ask(by, method, path, content, "", workspace).json().get(field, [])  # noqa: B023
            return sorted(row[name] for row in rows)  # noqa: B023

        stock, ours = (listed(user.name, server) for server in user.pair)
        if stock == ours:
            continue
        may_read = lambda one: user.pair[0].ask(user.name, *_SINGLE[field](one), "", workspace).status_code == 200  # noqa: B023, E731
        allowed = [one for one in listed(ADMIN, user.pair[0]) if may_read(one)]
        if ours != allowed:
            yield f"{method} {path} to {workspace}: stock {stock}, and may read {allowed}; ours {ours}; {user}"


def _decisions(places: list[tuple[Server, Server]], seed: int, users: int, requests: int) -> list[str]:
    """Returns the differences in some places, which are the workspaces of a pair of servers, or the
    pair itself.

    Two fifths of the requests are sent to another workspace.
    """
    choice = random.Random(seed)
    different = []
    has_workspaces = len(places) > 1

    def elsewhere() -> str | None:
        return choice.choice(places)[0].workspace if has_workspaces and choice.random() < 0.6 else None

    for number in range(users):
        roles = [_of_role(choice, has_workspaces) for _ in range(choice.randint(int(has_workspaces), 2))]
        user = _User(f"user{seed}x{number}", choice.choice(places), _granted(choice), roles)
        user.make()
        for index, asked in enumerate(choice.sample(REQUESTS, requests)):
            for server in user.pair:
                server.ids |= {"caller": user.name, "unique": f"{user.name}x{index}", "number": f"{seed:08x}{number:08x}{index:016x}"}
            different += _decision(user, asked, elsewhere())
        for shown in choice.sample(SHOWN, min(requests, len(SHOWN))):
            different += _shown(user, shown, elsewhere())
        for workspace in {None, elsewhere()}:
            different += _lists(user, workspace)
        name = choice.choice(["model1", "model2", "prompt1"])
        answers = [server.ask(user.name, *_REMOVAL, {"name": name}) for server in user.pair]
        if (answers[0].status_code == 403) != (answers[1].status_code == 403):
            different.append(f"{_REMOVAL} {name}: stock {answers[0].status_code}, ours {answers[1].status_code}; {user}")
        for server, answer in zip(user.pair, answers, strict=True):
            if answer.status_code == 200:
                furnish_model(server, name)
    return different


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("decisions"), "NO_PERMISSIONS") as pair:
        for server in pair:
            furnish(server)
        yield pair


def test_decisions(servers: tuple[Server, Server]) -> None:
    different = _decisions([servers], seed=1, users=3, requests=12)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


@pytest.mark.slow
@pytest.mark.parametrize("default_permission", ["READ", "EDIT", "NO_PERMISSIONS"])
def test_many_decisions(default_permission: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with both(tmp_path_factory.mktemp(default_permission), default_permission) as pair:
        for server in pair:
            furnish(server)
        different = _decisions([pair], seed=2, users=40, requests=30)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


@pytest.mark.slow
def test_many_decisions_in_workspaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    with both(tmp_path_factory.mktemp("workspaces"), "NO_PERMISSIONS", workspaces=True) as pair:
        different = _decisions(make_workspaces(pair), seed=3, users=40, requests=30)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


def test_each_route_is_among_the_requests() -> None:
    """Checks that the requests cover each route that both servers have, except for those that other
    tests cover.
    """
    levels = (Path(__file__).resolve().parents[2] / "docs/reference/levels.md").read_text()
    routes = re.findall(r"^\| (\w+) \| `([^`]+)`", levels, re.MULTILINE)
    lists = [(method, path) for method, path, *_ in [*SHOWN, *LISTS]]
    sent = {(method, path.split("?")[0].replace("/ajax-api/", "/api/")) for method, path, *_ in [*REQUESTS, *lists]}

    def is_sent(method: str, path: str) -> bool:
        pattern = re.sub(r"\{(?:artifact_path|path)\}", ".+", path.replace("/ajax-api/", "/api/"))
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", pattern))
        return any(method == own and pattern.fullmatch(sent_path) for own, sent_path in sent)

    assert len(routes) > 150
    assert not [route for route in routes if not is_elsewhere(route[1]) and not is_sent(*route)]
