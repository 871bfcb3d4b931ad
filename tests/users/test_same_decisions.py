"""Random grants, on MLflow's server and on ours: each request is refused by both or by none, and lists show the same."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.users.routes import Asked, all_further, is_elsewhere, location
from tests.users.world import ADMIN, PASSWORD, V2, V3, Server, both, furnish, furnish_model

_LEVELS = ["READ", "USE", "EDIT", "MANAGE", "DENY"]

#: What may be granted one by one: type and resource.
_RESOURCES = [
    *(("experiment", f"$experiment{number}") for number in (1, 2, 3)),
    ("registered_model", "model1"),
    ("registered_model", "model2"),
    ("prompt", "prompt1"),
    ("scorer", "$experiment1/scorer1"),
]
#: What may be granted for all of a type.
_TYPES = [
    *("experiment", "registered_model", "prompt", "scorer", "run", "trace", "assessment", "logged_model"),
    *("registered_model_version", "prompt_version", "scorer_version"),
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
_REQUESTS = [*(Asked(*request) for request in _OFTEN), *all_further()]

#: What removes a model that something may be granted for. It comes last: what a role has granted for the model counts for no other of its name.
_REMOVAL = ("DELETE", f"{V2}/registered-models/delete")

#: Lists: path, and what is looked at of the answer.
_LISTS = [
    ("POST", f"{V2}/experiments/search", {"max_results": 100}, "experiments", "name"),
    ("GET", f"{V2}/experiments/search", {"max_results": 100}, "experiments", "name"),
    ("GET", f"{V2}/registered-models/search", {}, "registered_models", "name"),
    ("GET", f"{V2}/registered-models/search", {"filter": "tags.`mlflow.prompt.is_prompt` = 'true'"}, "registered_models", "name"),
]


def _metadata(*parts: Any) -> list[tuple[Any, ...]]:
    return [(*parts, "trace_metadata", key) for key in ("mlflow.sourceRun", "mlflow.modelId")]


def _shown_of_experiment(number: int) -> list[tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]]:
    experiment, run, model, trace = f"$experiment{number}", f"$run{number}", f"$logged{number}", f"$trace{number}"
    asked = {"locations": [location(experiment)]}
    of_trace = [("trace", "trace_info", "assessments"), *_metadata("trace", "trace_info")]
    of_traces = [("traces", 0, "assessments"), *_metadata("traces", 0)]
    return [
        ("GET", f"{V2}/runs/get", {"run_id": run}, [("run", "outputs", "model_outputs")]),
        (
            *("POST", f"{V2}/runs/search", {"experiment_ids": [experiment], "filter": f"attributes.run_id = '{run}'"}),
            [("runs", 0), ("runs", 0, "outputs", "model_outputs")],
        ),
        ("GET", f"{V2}/logged-models/{model}", {}, [("model", "info", "source_run_id")]),
        ("POST", f"{V2}/logged-models/search", {"experiment_ids": [experiment]}, [("models", 0, "info", "source_run_id")]),
        ("POST", f"{V2}/logged-models/search", {"experiment_ids": [experiment], "filter": f"source_run_id = '{run}'"}, [("models", 0)]),
        ("GET", f"{V3}/traces/{trace}", {}, of_trace),
        ("POST", f"{V3}/traces/search", asked, of_traces),
        ("POST", f"{V3}/traces/search", {**asked, "filter": "feedback.f = 'true'"}, [("traces", 0)]),
        ("POST", f"{V3}/traces/search", {**asked, "filter": f"run_id = '{run}'"}, of_traces),
        ("POST", f"{V3}/traces/search", {**asked, "order_by": ["run_id DESC"]}, of_traces),
        ("POST", f"{V3}/traces/search", {**asked, "filter": f"metadata.`mlflow.modelId` = '{model}'"}, of_traces),
        ("POST", f"{V3}/traces/delete-traces", {"experiment_id": experiment, "request_ids": ["tr-0"]}, []),
    ]


def _shown_of_model(name: str) -> list[tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]]:
    latest = ("registered_model", "latest_versions")
    return [
        ("GET", f"{V2}/registered-models/get", {"name": name}, [latest, (*latest, "*", "run_id")]),
        ("GET", f"{V2}/model-versions/get", {"name": name, "version": "1"}, [("model_version", "run_id")]),
    ]


#: Each alias is decided by itself.
_QUERY = """{
  a: mlflowGetRun(input: {runId: "$run1"}) { run { info { runId } } }
  b: mlflowGetRun(input: {runId: "$run2"}) { run { info { runId } } }
  c: mlflowGetExperiment(input: {experimentId: "$experiment1"}) { experiment { name } }
  d: mlflowGetExperiment(input: {experimentId: "$experiment2"}) { experiment { name } }
  e: mlflowGetMetricHistoryBulkInterval(input: {runIds: ["$run1", "$run2"], metricKey: "m", maxResults: 9}) { metrics { key } }
}"""
_SEARCH = """{
  a: mlflowSearchRuns(input: {experimentIds: ["$experiment1"]}) { runs { info { runId } } }
  b: mlflowSearchModelVersions(input: {filter: "name = 'model1'"}) { modelVersions { name } }
}"""

#: Requests, and the parts of their answers that are left out where they are denied.
_SHOWN = [
    *(request for number in (1, 2) for request in _shown_of_experiment(number)),
    *(request for name in ("model1", "prompt1") for request in _shown_of_model(name)),
    ("GET", f"{V2}/registered-models/search", {"filter": "name = 'model1'"}, [("registered_models", 0, "latest_versions", "*", "run_id")]),
    ("GET", f"{V2}/model-versions/search", {"filter": "name = 'model1'"}, [("model_versions", 0, "run_id")]),
    ("GET", f"{V2}/model-versions/search", {"filter": "run_id = '$run1'"}, [("model_versions", 0)]),
    ("GET", f"{V3}/scorers/list", {"experiment_id": "$experiment1"}, [("scorers", 0)]),
    ("GET", f"{V3}/scorers/list", {}, [("scorers", 0)]),
    ("POST", "/graphql", {"query": _QUERY}, [("data", alias) for alias in ("a", "b", "c", "d", "e")]),
    ("POST", "/graphql", {"query": _SEARCH}, [("data", "a", "runs", 0), ("data", "b", "modelVersions", 0)]),
]


def _has(body: Any, parts: tuple[Any, ...]) -> bool:
    """Whether there is something behind these keys and positions, `*` being any position: the order of latest versions is nobody's."""
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


def _is_malformed(server: Server, asked: Asked, status: int) -> bool:
    """Whether ours refuses it to the administrator, too, for what it is: before anybody is asked for rights, as the operator guide says."""
    return status == 400 and server.ask(ADMIN, asked.method, asked.path, asked.content, asked.sent).status_code == 400


def _decisions(pair: tuple[Server, Server], seed: int, users: int, requests: int) -> list[str]:
    choice = random.Random(seed)
    different = []
    for number in range(users):
        user = f"user{seed}x{number}"
        direct, roles = _granted(choice), [_granted(choice) for _ in range(choice.randint(0, 2))]
        for server in pair:
            _administer(server, "POST", f"{V2}/users/create", {"username": user, "password": PASSWORD})
            for kind, resource, level in direct:
                granted = {"username": user, "resource_type": kind, "resource_id": resource, "permission": level}
                _administer(server, "POST", f"{V3}/users/permissions/grant", granted)
            for index, of_role in enumerate(roles):
                new = {"name": f"{user} {index}", "workspace": "default"}
                role = _administer(server, "POST", f"{V3}/roles/create", new)["role"]["id"]
                for kind, pattern, level in of_role:
                    granted = {"role_id": role, "resource_type": kind, "resource_pattern": pattern, "permission": level}
                    _administer(server, "POST", f"{V3}/roles/permissions/add", granted)
                _administer(server, "POST", f"{V3}/roles/assign", {"role_id": role, "username": user})
        told = f"direct {direct}, roles {roles}"
        for index, asked in enumerate(choice.sample(_REQUESTS, requests)):
            for server in pair:
                server.ids |= {"unique": f"{user}x{index}", "number": f"{seed:08x}{number:08x}{index:016x}"}
                if made := asked.made:
                    server.make("fresh", "POST", made.path, made.content, *made.pointer)
            method, path, content = asked.method, asked.path, asked.content
            stock, ours = (server.ask(user, method, path, content, asked.sent) for server in pair)
            is_accepted = (stock.status_code, ours.status_code) in asked.accepted
            if not is_accepted and (stock.status_code == 403) != (ours.status_code == 403) and not _is_malformed(pair[1], asked, ours.status_code):
                different.append(f"{method} {path} {asked.sent} {content}: stock {stock.status_code}, ours {ours.status_code}; {told}")
            for server, answer in zip(pair, (stock, ours), strict=True):
                if answer.status_code == 200 and method == "POST" and path.endswith("s/delete"):
                    _administer(server, "POST", path.replace("delete", "restore"), content)
        for method, path, content, parts in choice.sample(_SHOWN, min(requests, len(_SHOWN))):
            stock, ours = (server.ask(user, method, path, content) for server in pair)
            said = f"{method} {path} {content}"
            if (stock.status_code == 403) != (ours.status_code == 403):
                different.append(f"{said}: stock {stock.status_code}, ours {ours.status_code}; {told}")
            elif stock.status_code == 200 and ours.status_code == 200:
                for part in parts:
                    has = tuple(_has(answer.json(), part) for answer in (stock, ours))
                    if has[0] != has[1]:
                        different.append(f"{said}: {part} is there: stock {has[0]}, ours {has[1]}; {told}")
        for method, path, content, field, name in _LISTS:
            stock, ours = (sorted(row[name] for row in server.ask(user, method, path, content).json().get(field, [])) for server in pair)
            if stock != ours:
                different.append(f"{method} {path}: stock {stock}, ours {ours}; {told}")
        name = choice.choice(["model1", "model2", "prompt1"])
        answers = [server.ask(user, *_REMOVAL, {"name": name}) for server in pair]
        if (answers[0].status_code == 403) != (answers[1].status_code == 403):
            different.append(f"{_REMOVAL} {name}: stock {answers[0].status_code}, ours {answers[1].status_code}; {told}")
        for server, answer in zip(pair, answers, strict=True):
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
    different = _decisions(servers, seed=1, users=3, requests=12)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


@pytest.mark.slow
@pytest.mark.parametrize("default_permission", ["READ", "EDIT", "NO_PERMISSIONS"])
def test_many_decisions(default_permission: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with both(tmp_path_factory.mktemp(default_permission), default_permission) as pair:
        for server in pair:
            furnish(server)
        different = _decisions(pair, seed=2, users=40, requests=30)
    assert not different, f"{len(different)}:\n" + "\n".join(different)


def test_each_route_is_among_the_requests() -> None:
    """Each that both servers know, but for those that other tests send."""
    levels = (Path(__file__).resolve().parents[2] / "docs/reference/levels.md").read_text()
    routes = re.findall(r"^\| (\w+) \| `([^`]+)`", levels, re.MULTILINE)
    lists = [(method, path) for method, path, *_ in [*_SHOWN, *_LISTS]]
    sent = {(method, path.split("?")[0].replace("/ajax-api/", "/api/")) for method, path, *_ in [*_REQUESTS, *lists]}

    def is_sent(method: str, path: str) -> bool:
        pattern = re.sub(r"\{(?:artifact_path|path)\}", ".+", path.replace("/ajax-api/", "/api/"))
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", pattern))
        return any(method == own and pattern.fullmatch(sent_path) for own, sent_path in sent)

    assert len(routes) > 150
    assert not [route for route in routes if not is_elsewhere(route[1]) and not is_sent(*route)]
