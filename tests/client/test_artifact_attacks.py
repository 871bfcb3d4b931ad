"""Tests path traversal by paths and ids, at each endpoint that accepts one and with each kind of
artifact storage.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from mlflow import MlflowClient

from tests.client.attacked import MINE, SECRET, SERVED, Attacked, Owners, graphql
from tests.support.attacks import spellings
from tests.support.servers import subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="inspects the files of this project's server")

_API = "/api/2.0/mlflow"
_AJAX = "/ajax-api/2.0/mlflow"
_PART = {"num_parts": 1, "upload_id": "nobody's", "parts": [{"part_number": 1, "etag": "e"}]}


#: Kinds of storage. A bucket is slower, so `make test` tries only a third of the attacks on one.
_PLACES = [
    *("directory", "bucket that clients write, a third"),
    *(pytest.param(place, marks=pytest.mark.slow) for place in ("bucket", "bucket that clients write")),
]


@pytest.fixture(params=_PLACES)
def attacked(request: pytest.FixtureRequest, client: MlflowClient, tmp_path: Path) -> Iterator[Attacked]:
    s3 = None if request.param == "directory" else request.getfixturevalue("s3")
    name = f"attacked-{abs(hash(request.node.name))}-{os.getpid()}"
    attacked = Attacked(tmp_path, s3, name, is_direct="clients" in request.param)
    yield attacked
    attacked.server.stop()


@pytest.fixture
def tried(request: pytest.FixtureRequest, attacked: Attacked) -> Callable[[int], list[str]]:
    """Returns a function that selects the attacks for an endpoint: either all attacks, or a
    third of them, which differs from endpoint to endpoint."""
    parts = 3 if "a third" in request.node.callspec.params["attacked"] else 1
    return lambda turn: spellings()[turn % parts :: parts]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint with a path, which replaces `{}` in its URL or is passed to `body`."""

    method: str
    url: str
    body: Callable[[str], bytes] = lambda _: b""
    #: Directory below the artifacts that contains everything it writes or signs a URL for.
    below: str = "0"
    #: Whether it belongs to one run, so that another run's files must be inaccessible, too.
    is_of_run: bool = False
    #: Statuses of a valid path. Operations that this kind of storage does not support are answered
    #: with 400 or 501.
    well: tuple[int, ...] = (200, 307)

    def send(self, attacked: Attacked, path: str) -> tuple[int, dict[str, str], str]:
        return attacked.raw(self.method, self.url.format(path), self.body(path))


def _named(**fields) -> Callable[[str], bytes]:
    """Returns a function that creates a body with the path, decoded once from its form in a URL."""
    return lambda path: json.dumps(fields | {"path": unquote(path)}).encode()


def _endpoints(owners: Owners) -> list[Endpoint]:
    unsupported = (200, 307, 501)
    found = []
    bases = SERVED, SERVED.replace("/api/", "/ajax-api/")
    for base in bases:
        found += [
            Endpoint("GET", f"{base}/artifacts?path=0/{{}}"),
            Endpoint("GET", f"{base}/artifacts/0/{{}}"),
            Endpoint("GET", f"{base}/presigned/0/{{}}", well=unsupported),
        ]
    # Writing endpoints come after reading ones: multiple slashes of an absolute path below the
    # experiment's directory are merged, so a write may create a file there.
    for base in bases:
        found += [
            Endpoint("DELETE", f"{base}/artifacts/0/{{}}"),
            Endpoint("PUT", f"{base}/artifacts/0/{{}}", lambda _: b"attack"),
        ]
        for step, answered in (("create", unsupported), ("complete", (404, 501)), ("abort", unsupported)):
            found += [
                Endpoint("POST", f"{base}/mpu/{step}/0/{{}}", lambda _: json.dumps(_PART | {"path": "x"}).encode(), well=answered),
                Endpoint("POST", f"{base}/mpu/{step}/0", _named(**_PART), well=answered),
            ]
    refused = (200, 400, 501)
    for kind, owner, below in (
        ("upload", {"run_id": owners.run}, owners.of_run),
        ("upload", {"model_id": owners.model}, owners.of_model),
        ("download", {"run_id": owners.run}, owners.of_run),
    ):
        url = f"{_API}/artifacts/presigned-{kind}-url"
        found.append(Endpoint("POST", url, _named(**owner), below, is_of_run=True, well=refused))
    of_model = f"/mlflow/logged-models/{owners.model}/artifacts"
    found += [
        Endpoint("GET", f"{_API}/artifacts/list?run_id={owners.run}&path={{}}", is_of_run=True),
        Endpoint("GET", f"/get-artifact?run_uuid={owners.run}&path={{}}", is_of_run=True),
        Endpoint(
            "POST", f"{_AJAX}/upload-artifact?run_uuid={owners.run}&path={{}}", lambda _: b"attack", owners.of_run, is_of_run=True
        ),
        Endpoint("GET", f"/api/2.0{of_model}/directories?artifact_directory_path={{}}", is_of_run=True),
        Endpoint("GET", f"/ajax-api/2.0{of_model}/files?artifact_file_path={{}}", is_of_run=True),
        Endpoint("GET", "/model-versions/get-artifact?name=r&version=1&path={}", is_of_run=True),
        Endpoint("POST", "/graphql", lambda path: graphql(owners.run, unquote(path)), is_of_run=True),
    ]
    for version in ("2.0", "3.0"):
        url = f"/ajax-api/{version}/mlflow/get-trace-artifact?request_id={owners.trace}&path={{}}"
        found.append(Endpoint("GET", url, is_of_run=True))
    return found


def _check_urls(text: str, below: str, about: object) -> None:
    """Checks that each signed URL leads below `below`."""
    answer = json.loads(text) if text.startswith("{") else {}
    for url in [answer.get("presigned_url"), *(part["url"] for part in answer.get("credentials", []))]:
        path = unquote(urlsplit(url or "").path)
        assert not url or (f"/artifacts/{below}/" in path and "/../" not in path and "\\" not in path), (about, url)


def test_no_path_leads_elsewhere(attacked: Attacked, tried: Callable[[int], list[str]]):
    owners = Owners(attacked)
    before = attacked.files()
    refused = sent = 0
    for turn, endpoint in enumerate(_endpoints(owners)):
        # A valid path is accepted, so refusals of other paths are due to the path.
        status, _, text = endpoint.send(attacked, "mine")
        assert status in endpoint.well, (endpoint, status, text)
        attacks = tried(turn) + (owners.beside if endpoint.is_of_run else ["../outside/secret", "..%2foutside%2fsecret"])
        for attack in attacks:
            about = endpoint.method, endpoint.url, attack[:200]
            status, headers, text = endpoint.send(attacked, attack)
            assert status in (200, 400, 404, 405, 501), (about, status, text)
            assert "secret of" not in text and "root:" not in text and "location" not in headers, (about, text)
            _check_urls(text, endpoint.below, about)
            if endpoint.url == "/graphql":
                answer = json.loads(text)
                assert answer["errors"] or not answer["data"]["mlflowListArtifacts"]["files"], (about, text)
            elif status == 200:
                assert "files" not in json.loads(text or "{}"), (about, text)
            sent, refused = sent + 1, refused + (status == 400 or '"errors":["' in text.replace(" ", ""))
    assert refused > sent / 2, (refused, sent)
    after = attacked.files()
    for name in after.keys() - before.keys():
        # Names of new files are plain, and in the directory that is writable.
        assert name.startswith("artifacts/0/") and ".." not in name.split("/") and "\\" not in name, name
        assert not name.startswith(f"artifacts/0/{owners.other}/"), name
        assert after[name] == b"attack"
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed == {f"artifacts/{owners.of_run}/mine", "artifacts/0/mine"}
    assert SECRET not in {after[name] for name in changed}


def test_no_id_leads_elsewhere(attacked: Attacked, tried: Callable[[int], list[str]]):
    """Tests ids that are paths, which worked for traces in MLflow up to 3.17.1 (CVE-2026-53995)."""
    owners = Owners(attacked)
    before = attacked.files()

    def well(name: str) -> list[str]:
        # If ids were used as parts of paths, these would lead to existing files.
        return [
            f"./{name}", f"{name}/", f"{name}/.", f"x/../{name}", f"../0/{name}", f"{name}/../{owners.other}", f"{name}\0",
            f"{name}#", f"{name}?x", f"..\\0\\{name}", f"%2e%2e%2f0%2f{name}", f"/{name}",
        ]

    answers = []
    kinds = ("run", owners.run), ("model", owners.model), ("version", "1"), ("trace", owners.trace)
    for turn, (kind, name) in enumerate(kinds):
        attacks = [unquote(attack) for attack in tried(turn)] + ["..", ".", "../", "../../outside", "s3://b/x"]
        for id_ in attacks + well(name):
            in_url = quote(id_, safe="")
            if kind == "run":
                requests = [
                    ("GET", f"{_API}/artifacts/list?run_id={in_url}", b""),
                    ("GET", f"{_API}/artifacts/list?run_uuid={in_url}", b""),
                    ("GET", f"/get-artifact?run_uuid={in_url}&path=mine", b""),
                    ("GET", f"/get-artifact?run_id={in_url}&path=mine", b""),
                    ("POST", f"{_AJAX}/upload-artifact?run_uuid={in_url}&path=new", b"attack"),
                    ("POST", f"{_API}/artifacts/presigned-upload-url", json.dumps({"run_id": id_, "path": "mine"}).encode()),
                    ("POST", f"{_API}/artifacts/presigned-download-url", json.dumps({"run_id": id_, "path": "mine"}).encode()),
                    ("POST", "/graphql", graphql(id_, "")),
                ]
            elif kind == "model":
                requests = [
                    ("GET", f"{_API}/logged-models/{in_url}/artifacts/directories", b""),
                    ("GET", f"{_AJAX}/logged-models/{in_url}/artifacts/files?artifact_file_path=mine", b""),
                    ("POST", f"{_API}/artifacts/presigned-upload-url", json.dumps({"model_id": id_, "path": "mine"}).encode()),
                ]
            elif kind == "version":
                requests = [("GET", f"/model-versions/get-artifact?name=r&version={in_url}&path=mine", b"")]
                requests += [("GET", f"/model-versions/get-artifact?name={in_url}&version=1&path=mine", b"")]
            else:
                location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
                info = {"trace_id": id_, "trace_location": location, "request_time": "2025-01-01T00:00:00Z", "state": "OK"}
                requests = [("POST", "/api/3.0/mlflow/traces", json.dumps({"trace": {"trace_info": info}}).encode())]
                for version in ("2.0", "3.0"):
                    file = f"/ajax-api/{version}/mlflow/get-trace-artifact?request_id={in_url}"
                    requests += [("GET", file, b""), ("GET", f"{file}&path=mine", b"")]
            answers += [((method, url[:300], id_[:200]), *attacked.raw(method, url, body)) for method, url, body in requests]
    for about, status, headers, text in answers:
        if about[1] == "/graphql":
            assert status == 200 and json.loads(text)["errors"], (about, text)
        else:
            assert status in (400, 404, 405), (about, status, text)
        assert "secret of" not in text and MINE.decode() not in text and "location" not in headers, (about, text)
    assert attacked.files() == before
    [trace] = MlflowClient(attacked.url).search_traces(locations=["0"], include_spans=False)
    assert trace.info.trace_id == owners.trace
