"""What people and programs do with a deployment more seldom. Most of these steps use rights of the functions that no more common one does."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from mlflow import MlflowClient
from mlflow_serverless_auth import SigV4

from .front import serving_api
from .steps import PASSWORD, command, noise

_SECONDS = 300
_V2 = "/api/2.0/mlflow"
_V3 = "/api/3.0/mlflow"
#: Of a run and of a trace's request that this server gave no id: it asks an index for them.
_FOREIGN = "0123456789ab4cde8f0123456789abcd"
_PLACE = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}


def ids_that_were_made_elsewhere(world, directory: Path) -> None:
    _expect(world, 404, "GET", f"{_V2}/artifacts/list", query={"run_id": _FOREIGN})
    _done(world, "POST", f"{_V2}/registered-models/create", {"name": "foreign"})
    # A registry may have versions of another server's runs.
    _done(world, "POST", f"{_V2}/model-versions/create", {"name": "foreign", "source": "s3://elsewhere/model", "run_id": _FOREIGN})
    trace = _trace(world, "c", client_request_id=_FOREIGN)
    found = _done(world, "POST", f"{_V3}/traces/search", {"locations": [_PLACE], "filter": f"client_request_id = '{_FOREIGN}'"})
    assert [one["trace_id"] for one in found["traces"]] == [trace]


def files_of_models(world, directory: Path) -> None:
    """Each function that sends files sends those that are there, and says of others that they are not."""
    client = MlflowClient(world.signed)
    experiment = client.create_experiment("models")
    run = client.create_run(experiment).info.run_id
    client.log_text(run, "weights", "model/weights.txt")
    _done(world, "POST", f"{_V2}/registered-models/create", {"name": "with files"})
    version = {"name": "with files", "source": f"{client.get_run(run).info.artifact_uri}/model", "run_id": run}
    _done(world, "POST", f"{_V2}/model-versions/create", version)
    of_version = {"name": "with files", "version": "1"}
    assert _sent(world, "/model-versions/get-artifact", of_version | {"path": "weights.txt"}) == b"weights"
    _expect(world, 404, "GET", "/model-versions/get-artifact", query=of_version | {"path": "none.txt"})

    model = _done(world, "POST", f"{_V2}/logged-models", {"experiment_id": experiment, "name": "logged"})["model"]["info"]
    below = model["artifact_uri"].removeprefix("mlflow-artifacts:/")
    content = requests.put(f"{world.signed}/api/2.0/mlflow-artifacts/artifacts/{below}/weights.txt", b"weights", auth=SigV4(), timeout=_SECONDS)
    assert content.status_code == 200, content.text
    files = f"{_V2}/logged-models/{model['model_id']}/artifacts"
    assert [file["path"] for file in _done(world, "GET", f"{files}/directories")["files"]] == ["weights.txt"]
    assert _sent(world, f"/ajax-api{files.removeprefix('/api')}/files", {"artifact_file_path": "weights.txt"}) == b"weights"

    query = f'{{ mlflowListArtifacts(input: {{ runId: "{run}", path: "model" }}) {{ files {{ path }} }} }}'
    listed = _done(world, "POST", "/graphql", {"query": query})
    assert listed["data"]["mlflowListArtifacts"]["files"] == [{"path": "model/weights.txt"}], listed


def an_attachment_that_is_not_there(world, directory: Path) -> None:
    query = {"request_id": _trace(world, "d"), "path": "none.png"}
    _expect(world, 404, "GET", "/ajax-api/3.0/mlflow/get-trace-artifact", query=query)


def runs_and_experiments(world, directory: Path) -> None:
    """Many points of a metric at once, and another name for an experiment."""
    client = MlflowClient(world.signed)
    experiment = client.create_experiment("before")
    run = client.create_run(experiment).info.run_id
    points = [{"key": "loss", "value": step / 2, "timestamp": 1, "step": step} for step in range(40)]
    _done(world, "POST", f"{_V2}/runs/log-batch", {"run_id": run, "metrics": points})
    assert [point.step for point in client.get_metric_history(run, "loss")] == list(range(40))
    client.rename_experiment(experiment, "after")
    assert client.get_experiment_by_name("after").experiment_id == experiment
    assert client.get_experiment_by_name("before") is None


def scorers(world, directory: Path) -> None:
    """One that fits into no item."""
    name = {"experiment_id": "0", "name": "long"}
    text = f'{{"name": "long", "payload": "{noise("scorer", 700_000)}"}}'
    _done(world, "POST", f"{_V3}/scorers/register", name | {"serialized_scorer": text})
    assert _done(world, "GET", f"{_V3}/scorers/get", query=name)["scorer"]["serialized_scorer"] == text
    _done(world, "PUT", f"{_V3}/scorers/online-config", name | {"sample_rate": 0})
    _done(world, "DELETE", f"{_V3}/scorers/delete", name)
    _expect(world, 404, "GET", f"{_V3}/scorers/get", query=name)


def versions_of_models(world, directory: Path) -> None:
    """Short tags and long ones, the model that changed last, a version that goes."""
    _done(world, "POST", f"{_V2}/registered-models/create", {"name": "changed last"})
    _done(world, "POST", f"{_V2}/model-versions/create", {"name": "changed last", "source": "s3://elsewhere/model"})
    of_version = {"name": "changed last", "version": "1"}
    for key, value in [("short", "v"), ("long", "v" * 50_000)]:
        _done(world, "POST", f"{_V2}/model-versions/set-tag", of_version | {"key": key, "value": value})
    found = _done(world, "GET", f"{_V2}/registered-models/search", query={"order_by": "last_updated_timestamp DESC", "max_results": "1"})
    assert [model["name"] for model in found["registered_models"]] == ["changed last"]
    _done(world, "DELETE", f"{_V2}/model-versions/delete", of_version)
    _expect(world, 404, "GET", f"{_V2}/model-versions/get", query=of_version)


def users_come_and_go(world, directory: Path) -> None:
    """What they are granted, by themselves and by a role, goes with them."""
    experiment = MlflowClient(world.signed).create_experiment("granted")
    ben = {"username": "ben"}

    def admin(method: str, path: str, body: dict) -> dict:
        answer = requests.request(method, f"{world.users}{path}", json=body, auth=("admin", PASSWORD), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else {}

    def status() -> int:
        url = f"{world.users}{_V2}/experiments/get?experiment_id={experiment}"
        return requests.get(url, auth=("ben", PASSWORD), timeout=_SECONDS).status_code

    admin("POST", f"{_V2}/users/create", ben | {"password": PASSWORD})
    one = {"resource_type": "experiment", "resource_id": experiment}
    admin("POST", f"{_V3}/users/permissions/grant", ben | one | {"permission": "READ"})
    assert status() == 200
    admin("POST", f"{_V3}/users/permissions/revoke", ben | one)
    for kind in ("registered_model", "prompt"):
        admin("POST", f"{_V3}/users/permissions/grant", ben | {"resource_type": kind, "resource_id": "*", "permission": "READ"})
    held = admin("GET", f"{_V3}/users/permissions/list?username=ben", {})["permissions"]
    assert {(one["resource_type"], one["resource_pattern"]) for one in held} == {("registered_model", "*"), ("prompt", "*")}
    role = admin("POST", f"{_V3}/roles/create", {"name": "readers", "workspace": "default"})["role"]["id"]
    every = {"resource_type": "experiment", "resource_pattern": "*", "permission": "READ"}
    admin("POST", f"{_V3}/roles/permissions/add", {"role_id": role} | every)
    admin("POST", f"{_V3}/roles/assign", ben | {"role_id": role})
    assert status() == 200
    admin("DELETE", f"{_V2}/users/delete", ben)
    admin("DELETE", f"{_V3}/roles/delete", {"role_id": role})
    assert status() == 401


def a_user_opens_the_page(world, directory: Path) -> None:
    """One who is no administrator: the function of the page finds out who he is, and no more."""
    page = requests.get(f"{world.users}/", auth=("ann", PASSWORD), timeout=_SECONDS)
    assert page.status_code == 200, page.text
    assert "<html" in page.text


def too_many_requests(world, directory: Path) -> None:
    """The gateway refuses what comes faster than the operator allows, and a client that repeats it gets through."""
    api = world.stack.apis(RequestRate="3", RequestBurst="5")["Api"]
    with serving_api(world.account.emulator, api, world.caller) as url:
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: requests.get(f"{url}/version", auth=SigV4(), timeout=_SECONDS), range(40)))
        counts = Counter(answer.status_code for answer in answers)
        assert set(counts) == {200, 429} and counts[200] >= 5, counts
        assert {answer.json()["message"] for answer in answers if answer.status_code == 429} == {"Too Many Requests"}
        client = MlflowClient(url)
        assert [client.get_experiment("0").experiment_id for _ in range(3)] == ["0"] * 3


def what_was_deleted_is_removed(world, directory: Path) -> None:
    """What the housekeeper does when it is called. test_automatic_removal.py waits until it is."""
    removed = something_deleted(world, "removed by a call")
    assert housekeeping(world) == {"is_done": True}
    for run in removed:
        # Without a policy, nothing is removed.
        _expect(world, 200, "GET", f"{_V2}/runs/get", query={"run_id": run})
    with removal_after(world, "0s"):
        assert housekeeping(world) == {"is_done": True}
    assert is_gone(world, removed)


def something_deleted(world, name: str) -> tuple[str, str]:
    """A run of an experiment that stays, and an experiment: with files and points. Returns the ids of two runs."""
    client = MlflowClient(world.signed)
    runs = []
    for stays in (True, False):
        experiment = client.create_experiment(f"{name}, {'a run' if stays else 'all of it'}")
        run = client.create_run(experiment, tags={"kind": "deleted"}).info.run_id
        points = [{"key": "loss", "value": step / 2, "timestamp": 1, "step": step} for step in range(40)]
        _done(world, "POST", f"{_V2}/runs/log-batch", {"run_id": run, "metrics": points})
        client.log_text(run, "of a run", "notes.txt")
        runs.append(run)
    client.delete_run(runs[0])
    client.delete_experiment(experiment)
    return runs[0], runs[1]


def is_gone(world, runs: tuple[str, str]) -> bool:
    """Whether the runs are gone, and all of their files."""
    found = world.account.emulator.s3.list_objects_v2(Bucket=world.stack.outputs["BucketName"]).get("Contents", [])
    left = [one["Key"] for one in found if any(run in one["Key"] for run in runs)]
    statuses = {_ask(world, "GET", f"{_V2}/runs/get", query={"run_id": run}).status_code for run in runs}
    assert statuses <= {200, 404}, statuses
    return statuses == {404} and not left


@contextmanager
def removal_after(world, age: str) -> Iterator[None]:
    """The policy is this, and then there is none again."""
    command(world, "gc", "--set-policy", age)
    try:
        yield
    finally:
        command(world, "gc", "--set-policy", "off")


def housekeeping(world) -> dict[str, Any]:
    answer = world.account.emulator.functions.invoke(FunctionName=f"{world.stack.name}-housekeeper", Payload=b"{}")
    told = answer["Payload"].read()
    assert "FunctionError" not in answer, told
    return json.loads(told)


def sends_in_parts(url: str) -> None:
    """A file of one part, as clients send long ones to a server that bounds them."""
    place, below = f"{url}/api/2.0/mlflow-artifacts", "sizes"

    def post(action: str, body: dict) -> requests.Response:
        answer = requests.post(f"{place}/mpu/{action}/{below}", json={"path": "in-parts"} | body, auth=SigV4(), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer

    begun = post("create", {"num_parts": 1}).json()
    [part] = begun["credentials"]
    sent = requests.put(part["url"], b"a part", timeout=_SECONDS)
    assert sent.status_code == 200, sent.text
    done = {"part_number": 1, "etag": sent.headers["ETag"], "url": part["url"]}
    post("complete", {"upload_id": begun["upload_id"], "parts": [done]})
    read = requests.get(f"{place}/artifacts/{below}/in-parts", auth=SigV4(), timeout=_SECONDS)
    assert read.content == b"a part", read.text


#: After the others: they look at what those made.
RARE = [
    ids_that_were_made_elsewhere,
    files_of_models,
    an_attachment_that_is_not_there,
    runs_and_experiments,
    scorers,
    versions_of_models,
    users_come_and_go,
    a_user_opens_the_page,
    too_many_requests,
    what_was_deleted_is_removed,
]


def _trace(world, digit: str, **fields: str) -> str:
    """One that is described, and has no spans."""
    trace = f"tr-{digit * 32}"
    info = {"trace_id": trace, "trace_location": _PLACE, "request_time": "2023-11-14T22:13:20Z", "state": "OK"}
    _done(world, "POST", f"{_V3}/traces", {"trace": {"trace_info": info | fields}})
    return trace


def _ask(world, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> requests.Response:
    return requests.request(
        method, f"{world.signed}{path}", json=body, params=query, auth=SigV4(), timeout=_SECONDS, allow_redirects=False
    )


def _expect(world, status: int, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> requests.Response:
    answer = _ask(world, method, path, body, query)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def _done(world, method: str, path: str, body: dict | None = None, query: dict[str, str] | None = None) -> Any:
    return _expect(world, 200, method, path, body, query).json()


def _sent(world, path: str, query: dict[str, str]) -> bytes:
    """A file that the server sends its clients to."""
    place = _expect(world, 307, "GET", path, query=query).headers["Location"]
    content = requests.get(place, timeout=_SECONDS)
    assert content.status_code == 200, content.text
    return content.content
