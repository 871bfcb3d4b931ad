"""Tests of artifacts in a bucket through the functions: the operations that stock clients also
perform through `serve`.
"""

import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import mlflow
import mlflow.artifacts
import mlflow.sklearn
import numpy
import pandas
import pytest
import requests
from mlflow import MlflowClient
from sklearn.linear_model import LogisticRegression

from tests.support.files import log_and_fetch_by_many, upload_and_download
from tests.support.servers import ARTIFACT_ROOT

from .conftest import LocalLambda

#: Number of concurrent clients, which is larger than the number of sandboxes of a function.
_CLIENTS = 8
#: Headers of stock clients. The gateway passes on a body as text if its type is text or missing.
_BINARY = {"Content-Type": "application/octet-stream"}
_SERVED = "/api/2.0/mlflow-artifacts"
_PREFIX = urlsplit(ARTIFACT_ROOT).path.removeprefix("/")


class Place:
    """An experiment with its own directory, in which clients write and read files through the
    functions.
    """

    def __init__(self, running: LocalLambda):
        self.url = running.gateway
        self.directory = f"of-{uuid.uuid4().hex}"
        self._bucket = running.bucket
        mlflow.set_tracking_uri(self.url)
        self.experiment = mlflow.create_experiment(self.directory, f"mlflow-artifacts:/{self.directory}")
        mlflow.set_experiment(experiment_id=self.experiment)

    def served(self, path: str, what: str = "artifacts") -> str:
        """Returns the URL of a file in the directory."""
        return f"{self.url}{_SERVED}/{what}/{self.directory}/{path}"

    def visible(self) -> set[str]:
        """Returns the paths of all files."""
        below = f"{_PREFIX}/{self.directory}/"
        return {key.removeprefix(below) for key in self._bucket.keys() if key.startswith(below)}

    def unfinished(self) -> set[str]:
        """Returns the paths of files with an unfinished multipart upload."""
        below = f"{_PREFIX}/{self.directory}/"
        return {key.removeprefix(below) for key in self._bucket.unfinished() if key.startswith(below)}


@pytest.fixture
def place(local_lambda: LocalLambda, monkeypatch: pytest.MonkeyPatch) -> Place:
    # Resets the client's state, including the variable that `set_experiment` sets.
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
    return Place(local_lambda)


def _log_many(place: Place, count: int, directory: Path) -> None:
    source = directory / "source"
    for number in range(count):
        path = source / f"d{number % 7}" / f"file {number} é.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content {number}")
    with mlflow.start_run() as run:
        mlflow.log_artifacts(str(source), "many")
    fetched = Path(MlflowClient().download_artifacts(run.info.run_id, "many", str(directory)))
    logged = {path.relative_to(source): path.read_text() for path in source.rglob("*.txt")}
    assert len(logged) == count
    assert {path.relative_to(fetched): path.read_text() for path in fetched.rglob("*.txt")} == logged


def test_many_files(place: Place, tmp_path: Path):
    _log_many(place, 21, tmp_path)


def test_files_of_every_kind(place: Place):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    axes.plot([0, 1], [2, 3])
    with mlflow.start_run() as run:
        assert run.info.artifact_uri.startswith(f"mlflow-artifacts:/{place.directory}/")
        mlflow.log_text("<p>text</p>", "page.html")
        mlflow.log_image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), "image.png")
        mlflow.log_image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), key="step", step=1)
        mlflow.log_figure(figure, "figure.png")
        mlflow.log_table({"a": [1, 2], "b": ["x", "y"]}, "table.json")
        mlflow.log_table({"a": [3], "b": ["z"]}, "table.json")
    client, run_id = MlflowClient(), run.info.run_id
    top = {file.path: file.is_dir for file in client.list_artifacts(run_id)}
    assert top == {"figure.png": False, "image.png": False, "images": True, "page.html": False, "table.json": False}
    assert {file.path.rsplit(".")[-1] for file in client.list_artifacts(run_id, "images")} == {"png", "webp"}
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/page.html") == "<p>text</p>"
    assert mlflow.artifacts.load_image(f"runs:/{run_id}/image.png").size == (4, 4)
    assert mlflow.artifacts.load_image(f"runs:/{run_id}/figure.png").size[0] > 0
    table = mlflow.load_table("table.json", [run_id])
    assert table.equals(pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    with pytest.raises(Exception, match="ensure that the path is correct"):
        client.download_artifacts(run_id, "nothing")


def test_a_model_is_logged_and_loaded_by_its_alias(place: Place):
    features = numpy.random.default_rng(1).normal(size=(40, 3))
    fitted = LogisticRegression().fit(features, (features[:, 0] > 0).astype(int))
    name = place.directory
    with mlflow.start_run():
        mlflow.sklearn.log_model(fitted, name="model", registered_model_name=name, pip_requirements=[])
    MlflowClient().set_registered_model_alias(name, "champion", "1")
    loaded = mlflow.sklearn.load_model(f"models:/{name}@champion")
    assert (loaded.predict(features) == fitted.predict(features)).all()


def test_a_download_is_resumed(place: Place):
    content = os.urandom(1_000_000)
    requests.put(place.served("file"), content, headers=_BINARY, timeout=60).raise_for_status()
    first = requests.get(place.served("file"), stream=True, timeout=60)
    begin = next(first.iter_content(400_000))
    first.close()
    headers = {"Range": f"bytes={len(begin)}-", "If-Match": first.headers["ETag"]}
    rest = requests.get(place.served("file"), headers=headers, timeout=60)
    assert (rest.status_code, begin + rest.content == content) == (206, True)


def test_many_clients_at_once(place: Place):
    content = {number: bytes([255 - number]) * 200_000 for number in range(_CLIENTS)}
    start = threading.Barrier(_CLIENTS, timeout=600)

    def work(number: int) -> bool:
        session = requests.Session()
        start.wait()
        # All clients write to the shared file, and to files of their own.
        for name in ("shared", f"own-{number}"):
            session.put(place.served(name), content[number], headers=_BINARY, timeout=120).raise_for_status()
        shared = session.get(place.served("shared"), timeout=120).content
        own = session.get(place.served(f"own-{number}"), timeout=120).content
        return own == content[number] and shared in content.values()

    with ThreadPoolExecutor(_CLIENTS) as threads:
        assert all(threads.map(work, range(_CLIENTS)))
    assert len(place.visible()) == _CLIENTS + 1


def test_many_stock_clients_at_once(place: Place, tmp_path: Path):
    log_and_fetch_by_many(place.url, place.experiment, tmp_path, _CLIENTS)


def test_an_upload_that_ends_early_is_not_seen(place: Place):
    requests.put(place.served("kept"), b"whole", timeout=60).raise_for_status()
    for name in ("kept", "new"):
        body = {"path": name, "num_parts": 2}
        upload = requests.post(place.served("", "mpu/create").rstrip("/"), json=body, timeout=60).json()
        requests.put(upload["credentials"][0]["url"], b"x" * 1_000, timeout=60).raise_for_status()
    assert place.visible() == {"kept"}
    assert requests.get(place.served("kept"), timeout=60).content == b"whole"
    assert requests.get(place.served("new"), timeout=60).status_code == 404
    # Parts remain until the bucket's lifecycle rule removes them (`test_template.py`), because a
    # function cannot distinguish an interrupted client from a slow one.
    assert place.unfinished() == {"kept", "new"}


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "true")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", str(4 << 20))


def test_a_file_that_is_too_long_for_a_function(place: Place, in_parts: None, tmp_path: Path):
    upload_and_download(place.url, place.experiment, tmp_path / "big", 23)


@pytest.mark.slow
def test_a_file_of_two_gigabytes(place: Place, in_parts: None, tmp_path: Path):
    upload_and_download(place.url, place.experiment, tmp_path / "big", 2_048)


@pytest.mark.slow
def test_a_thousand_files(place: Place, tmp_path: Path):
    _log_many(place, 1_000, tmp_path)
