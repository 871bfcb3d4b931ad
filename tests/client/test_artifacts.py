"""Tests of artifacts through the server, as `serve` stores them by default: accessible from any
machine, atomic, and of any size.
"""

import http.client
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
from tests.support.processes import ChildProcess, child_environment, wait_until
from tests.support.s3 import LocalS3
from tests.support.servers import ServerlessMlflow, binary, subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="inspects the directory of this project's server")

_CLIENTS = 16
_FILES = 40
_API = "/api/2.0/mlflow"
_PROXY = "/api/2.0/mlflow-artifacts/artifacts"
#: Number of files that each concurrent client writes, and of its writes to the shared file.
_ROUNDS = 4
#: Maximum memory of a server, regardless of the amount of data transferred. For a bucket, it
#: applies only to a release build, which `make test-slow` runs.
_MOST_KB = 64 * 1024
#: Additional memory for the code of a development build. Of the 68 MB that an idle server occupies,
#: 57 MB are pages of the program's file.
_MORE_CODE_KB = 24 * 1024
#: Number of concurrent uploads to a bucket that the server accepts.
_UPLOADS = 32
#: Maximum growth of memory due to a file of any size.
_MOST_GROWTH_KB = 24 * 1024


class Served:
    """A server with its artifacts in a directory, and its data on disk."""

    is_bucket = False

    def __init__(self, directory: Path):
        self.directory = directory
        self.artifacts = directory / "data/artifacts"
        self.start()

    def start(self) -> None:
        self._start()

    def _start(self, **options) -> None:
        self.server = ServerlessMlflow(self.directory, artifact_root="mlflow-artifacts:/", **options)
        mlflow.set_tracking_uri(self.server.url)

    @property
    def url(self) -> str:
        return self.server.url

    def files(self) -> set[str]:
        """Returns all files, including unfinished uploads."""
        found = (path.relative_to(self.artifacts) for path in self.artifacts.rglob("*") if path.is_file())
        return {str(path) for path in found}

    def unfinished(self) -> int:
        """Returns the number of uploads that have begun and are not visible yet."""
        staging = ".artifact.uploading."
        return sum(1 for path in self.files() if path.startswith(staging))

    def visible(self) -> set[str]:
        """Returns the paths of all artifacts."""
        return {path for path in self.files() if not path.startswith(".artifact.uploading.")}

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, self.server.process)

    def peak_kb(self) -> int:
        """Returns the server's peak memory usage."""
        return self.server.process.peak_kb()


class ServedFromBucket(Served):
    """A server with its artifacts below a prefix of a bucket."""

    is_bucket = True

    def __init__(self, directory: Path, s3: LocalS3):
        self.bucket = s3.make_bucket(f"bucket-{uuid.uuid4().hex}")
        super().__init__(directory)

    def start(self) -> None:
        destination = ["--artifacts-destination", f"s3://{self.bucket.name}/a prefix"]
        self._start(options=destination, environment=self.bucket.s3.environment)

    def visible(self) -> set[str]:
        keys = self.bucket.keys()
        assert all(key.startswith("a prefix/") for key in keys), keys
        return {key.removeprefix("a prefix/") for key in keys}

    def unfinished(self) -> int:
        return len(self.bucket.unfinished())


@pytest.fixture
def served(client: MlflowClient, tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "served")
    yield served
    served.server.stop()


@pytest.fixture(params=[pytest.param("directory", marks=pytest.mark.slow), "bucket"])
def kept(request: pytest.FixtureRequest, client: MlflowClient, tmp_path: Path) -> Iterator[Served]:
    """Yields a server for each kind of artifact storage."""
    if request.param == "directory":
        kept = Served(tmp_path / "served")
    else:
        kept = ServedFromBucket(tmp_path / "served", request.getfixturevalue("s3"))
    yield kept
    kept.server.stop()


@pytest.fixture
def run_kept(kept: Served) -> Iterator[mlflow.ActiveRun]:
    with mlflow.start_run() as run:
        yield run


@pytest.fixture
def run_of_server(served: Served) -> Iterator[mlflow.ActiveRun]:
    with mlflow.start_run() as run:
        yield run


def _start_upload(url: str, path: str, length: int, sent: int) -> socket.socket:
    """Begins an upload of `length` bytes, and sends only `sent` of them."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    head = f"PUT {_PROXY}/{path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode() + b"x" * sent)
    return connection


def test_files_of_every_kind(kept: Served, run_kept: mlflow.ActiveRun, tmp_path: Path):
    assert run_kept.info.artifact_uri == f"mlflow-artifacts:/0/{run_kept.info.run_id}/artifacts"
    source = tmp_path / "source"
    for number in range(_FILES):
        path = source / f"d{number % 7}" / f"file {number} é.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content {number}")
    mlflow.log_artifacts(str(source), "many")
    mlflow.log_artifact(str(source / "d0/file 0 é.txt"))
    mlflow.log_text("<p>text</p>", "page.html")
    mlflow.log_dict({"a": [1, 2]}, "deep/er/dict.json")
    mlflow.log_image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), "image.png")
    mlflow.log_image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), key="step", step=1)
    mlflow.log_table({"a": [1, 2], "b": ["x", "y"]}, "table.json")
    mlflow.log_table({"a": [3], "b": ["z"]}, "table.json")

    client = MlflowClient()
    run_id = run_kept.info.run_id
    top = {file.path: file.is_dir for file in client.list_artifacts(run_id)}
    assert top == {
        "deep": True, "file 0 é.txt": False, "image.png": False, "images": True, "many": True, "page.html": False,
        "table.json": False,
    }
    assert len(client.list_artifacts(run_id, "many/d1")) == len(range(1, _FILES, 7))
    assert client.list_artifacts(run_id, "page.html") == []
    assert client.list_artifacts(run_id, "nothing") == []
    fetched = Path(client.download_artifacts(run_id, "many", str(tmp_path)))
    told = {path.relative_to(source): path.read_text() for path in source.rglob("*.txt")}
    assert {path.relative_to(fetched): path.read_text() for path in fetched.rglob("*.txt")} == told
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/page.html") == "<p>text</p>"
    assert mlflow.artifacts.load_dict(f"runs:/{run_id}/deep/er/dict.json") == {"a": [1, 2]}
    assert mlflow.artifacts.load_image(f"runs:/{run_id}/image.png").size == (4, 4)
    table = mlflow.load_table("table.json", [run_id])
    assert table.equals(pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    assert {file.path.rsplit(".")[-1] for file in client.list_artifacts(run_id, "images")} == {"png", "webp"}
    with pytest.raises(Exception, match="ensure that the path is correct"):
        client.download_artifacts(run_id, "nothing", str(tmp_path))


@pytest.mark.slow
def test_figures(kept: Served, run_kept: mlflow.ActiveRun):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    axes.plot([0, 1], [2, 3])
    mlflow.log_figure(figure, "figure.png")
    assert mlflow.artifacts.load_image(f"runs:/{run_kept.info.run_id}/figure.png").size[0] > 0


@pytest.mark.slow
def test_models_are_logged_registered_and_loaded(kept: Served, run_kept: mlflow.ActiveRun):
    features = numpy.random.default_rng(1).normal(size=(40, 3))
    fitted = LogisticRegression().fit(features, (features[:, 0] > 0).astype(int))
    mlflow.sklearn.log_model(fitted, name="model", registered_model_name="m", pip_requirements=[])
    client = MlflowClient()
    client.set_registered_model_alias("m", "champion", "1")
    loaded = mlflow.sklearn.load_model("models:/m@champion")
    assert (loaded.predict(features) == fitted.predict(features)).all()
    query = {"name": "m", "version": "1", "path": "MLmodel"}
    answer = requests.get(f"{kept.url}/model-versions/get-artifact", query, timeout=60)
    assert (answer.status_code, "flavors:" in answer.text) == (200, True)


def test_deleting_a_run_s_artifacts(kept: Served, run_kept: mlflow.ActiveRun):
    mlflow.log_text("x", "a/b.txt")
    repository = mlflow.store.artifact.artifact_repository_registry.get_artifact_repository(run_kept.info.artifact_uri)
    repository.delete_artifacts("a")
    assert MlflowClient().list_artifacts(run_kept.info.run_id) == []
    assert kept.visible() == set()


def test_a_client_that_asks_for_parts_takes_the_proxy(
    served: Served, run_of_server: mlflow.ActiveRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "true")
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD", "true")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1")
    (tmp_path / "file").write_text("content")
    mlflow.log_artifact(str(tmp_path / "file"))
    assert mlflow.artifacts.load_text(f"runs:/{run_of_server.info.run_id}/file") == "content"


def test_many_clients_at_once(kept: Served):
    served = kept
    content = {number: bytes([number]) * 300_000 for number in range(_CLIENTS)}
    start, end = (threading.Barrier(_CLIENTS, timeout=600) for _ in range(2))

    def work(number: int) -> bool:
        session = requests.Session()
        start.wait()
        for file in range(_ROUNDS):
            # All clients write to the shared file, and to files of their own.
            for name in ("shared", f"own-{number}-{file}"):
                session.put(f"{served.url}{_PROXY}/0/x/{name}", content[number], timeout=120).raise_for_status()
        if isinstance(kept, ServedFromBucket):
            # With moto, a concurrent reader may get half of a file, unlike with S3 and a directory.
            end.wait()
        shared = session.get(f"{served.url}{_PROXY}/0/x/shared", timeout=120).content
        own = session.get(f"{served.url}{_PROXY}/0/x/own-{number}-{_ROUNDS - 1}", timeout=120).content
        return own == content[number] and shared in content.values()

    with ThreadPoolExecutor(_CLIENTS) as threads:
        assert all(threads.map(work, range(_CLIENTS)))
    assert len(kept.visible()) == _ROUNDS * _CLIENTS + 1


@pytest.mark.slow
def test_many_stock_clients_at_once(kept: Served, tmp_path: Path):
    log_and_fetch_by_many(kept.url, "0", tmp_path, _CLIENTS)


def test_an_upload_that_ends_early_leaves_nothing(kept: Served):
    requests.put(f"{kept.url}{_PROXY}/0/x/kept", b"whole", timeout=60).raise_for_status()
    connections = [_start_upload(kept.url, f"0/x/{name}", 20_000_000, 11_000_000) for name in ("kept", "new")]
    kept.wait(lambda: kept.unfinished() == 2, "files that are being uploaded")
    listed = requests.get(f"{kept.url}{_PROXY}", {"path": "0/x"}, timeout=60).json()
    assert [file["path"] for file in listed["files"]] == ["kept"]
    for connection in connections:
        connection.close()
    kept.wait(lambda: kept.unfinished() == 0, "an end of the uploads")
    assert kept.visible() == {"0/x/kept"}
    assert requests.get(f"{kept.url}{_PROXY}/0/x/kept", timeout=60).content == b"whole"


#: Program of a client process, which uploads a file as an artifact.
_UPLOAD = "import sys; from mlflow import MlflowClient; MlflowClient(sys.argv[1]).log_artifact(sys.argv[2], sys.argv[3])"


def _kill_an_upload(kept: Served, directory: Path, **environment: str) -> None:
    """Kills a stock client's process while it uploads a sparse file, which takes no space on the
    disk.
    """
    run = MlflowClient(kept.url).create_run("0").info.run_id
    with (directory / "big.bin").open("wb") as file:
        file.truncate(1 << 30)
    command = ["-c", _UPLOAD, kept.url, run, str(directory / "big.bin")]
    client = ChildProcess(command, child_environment(**environment), directory, directory / "client.log", warm=True)
    try:
        wait_until(lambda: kept.unfinished() == 1, "an upload that has begun", client, patience=180)
    finally:
        client.kill()
    listed = requests.get(f"{kept.url}{_API}/artifacts/list", {"run_id": run}, timeout=60).json()
    assert "files" not in listed and kept.visible() == set()
    assert requests.get(f"{kept.url}/get-artifact", {"run_id": run, "path": "big.bin"}, timeout=60).status_code == 404


def test_a_client_that_is_killed_leaves_nothing(kept: Served, tmp_path: Path):
    """Checks that an incomplete upload through the server is removed as soon as the connection
    ends."""
    _kill_an_upload(kept, tmp_path, MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD="false")
    kept.wait(lambda: kept.unfinished() == 0, "an end of the upload")
    assert kept.visible() == set()


def test_a_client_that_is_killed_between_two_parts_leaves_nothing_that_is_seen(client: MlflowClient, s3: LocalS3, tmp_path: Path):
    """Checks that parts that were sent directly to the bucket are not visible. They remain until
    the bucket's lifecycle rule removes them."""
    kept = ServedFromBucket(tmp_path / "served", s3)
    try:
        _kill_an_upload(kept, tmp_path, MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD="true")
        assert kept.unfinished() == 1
    finally:
        kept.server.stop()


def test_a_server_that_is_killed_leaves_nothing_of_an_upload(served: Served):
    connection = _start_upload(served.url, "0/x/new", 10_000_000, 3_000_000)
    served.wait(lambda: len(served.files()) == 1, "a file that is being uploaded")
    served.server.kill()
    connection.close()
    assert len(served.files()) == 1
    served.start()
    assert served.files() == set()
    assert requests.get(f"{served.url}{_PROXY}/0/x/new", timeout=60).status_code == 404


def test_a_server_that_is_asked_to_end_finishes_an_upload(served: Served):
    idle = requests.Session()
    assert idle.get(f"{served.url}/health", timeout=60).status_code == 200
    connection = _start_upload(served.url, "0/x/new", 2_000_000, 1_000_000)
    served.wait(lambda: served.unfinished() == 1, "a file that is being uploaded")
    os.kill(served.server.process.pid, signal.SIGTERM)
    host, port = served.url.removeprefix("http://").split(":")

    def is_closed() -> bool:
        with socket.socket() as new:
            return new.connect_ex((host, int(port))) != 0

    served.wait(is_closed, "an end of listening")
    connection.sendall(b"x" * 1_000_000)
    assert connection.recv(1_000).startswith(b"HTTP/1.1 200")
    # An idle keep-alive connection does not delay the exit.
    served.server.process.wait()
    connection.close()
    assert served.files() == {"0/x/new"}


def test_a_download_is_resumed(kept: Served):
    content = os.urandom(1_000_000)
    url = f"{kept.url}{_PROXY}/0/x/file"
    requests.put(url, content, timeout=60).raise_for_status()
    first = requests.get(url, stream=True, timeout=60)
    begin = next(first.iter_content(400_000))
    first.close()
    rest = requests.get(url, headers={"Range": f"bytes={len(begin)}-", "If-Match" if kept.is_bucket else "If-Range": first.headers["ETag"]}, timeout=60)
    assert (rest.status_code, begin + rest.content == content) == (206, True)


def test_memory_stays_flat_while_a_big_file_moves(kept: Served, tmp_path: Path):
    """Checks the memory for a large file. Stock clients send files below 500 MB through the server,
    regardless of the storage.
    """
    upload_and_download(kept.url, "0", tmp_path / "small", 4)
    before = kept.peak_kb()
    upload_and_download(kept.url, "0", tmp_path / "big", 60 if kept.is_bucket else 200)
    assert kept.peak_kb() - before < _MOST_GROWTH_KB


@pytest.mark.slow
@pytest.mark.parametrize("multipart", ["true", "false"])
def test_a_file_of_two_gigabytes(kept: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multipart: str):
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", multipart)
    before = kept.peak_kb()
    upload_and_download(kept.url, "0", tmp_path / "big", 2_048)
    assert kept.peak_kb() - before < _MOST_GROWTH_KB


@pytest.mark.slow
def test_memory_of_uploads_to_a_bucket_is_that_of_some_parts(client: MlflowClient, s3: LocalS3, tmp_path: Path):
    served = ServedFromBucket(tmp_path / "served", s3)
    try:
        _move_at_once(served, 1)
        before = served.peak_kb()
        _move_at_once(served, 64)
        assert served.peak_kb() - before < 4 * 5 * 1024 + _MOST_GROWTH_KB, before
        if _is_release():
            assert served.peak_kb() < _MOST_KB
    finally:
        served.server.stop()


@pytest.mark.slow
def test_memory_of_uploads_that_stall_is_bounded(
    client: MlflowClient, s3: LocalS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Checks that the number of concurrent uploads is limited, and that a stalled upload times out
    after a minute. Further clients receive a `Retry-After` header, and stock clients retry.
    """
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    served = ServedFromBucket(tmp_path / "served", s3)
    (tmp_path / "file").write_bytes(b"x" * 20_000_000)
    try:
        _move_at_once(served, 1)
        before, files = served.peak_kb(), served.visible()
        run = MlflowClient(served.url).create_run("0").info
        with ThreadPoolExecutor(_UPLOADS + 1) as threads:
            started = threads.map(lambda number: _start_upload(served.url, f"0/x/stalled-{number}", 20_000_000, 9_000_000), range(_UPLOADS))
            served.wait(lambda: served.unfinished() == _UPLOADS, "uploads that have begun")
            logged = threads.submit(MlflowClient(served.url).log_artifact, run.run_id, str(tmp_path / "file"))
            refused = requests.put(f"{served.url}{_PROXY}/0/x/one-too-many", b"x" * 9_000_000, timeout=60)
            assert (refused.status_code, refused.json()["error_code"]) == (429, "RESOURCE_EXHAUSTED")
            assert 5 <= int(refused.headers["Retry-After"]) <= 15 and served.unfinished() == _UPLOADS
            logged.result(timeout=240)
            for connection in started:
                assert connection.recv(1_000).startswith(b"HTTP/1.1 408")
        served.wait(lambda: served.unfinished() == 0, "an end of the uploads")
        assert served.visible() == files | {run.artifact_uri.removeprefix("mlflow-artifacts:/") + "/file"}
        assert served.peak_kb() - before < _UPLOADS * 5 * 1024 + _MOST_GROWTH_KB
    finally:
        served.server.stop()


def _move_at_once(served: Served, megabytes: int) -> None:
    """Uploads, downloads and uploads again a file per client, with eight concurrent clients, as in
    the goal for memory.
    """
    host, block = served.url.removeprefix("http://"), os.urandom(1 << 20)

    def upload(number: int) -> None:
        connection = http.client.HTTPConnection(host, timeout=600)
        body = (block for _ in range(megabytes))
        connection.request("PUT", f"{_PROXY}/0/x/{number}", body, {"Content-Length": str(megabytes << 20)})
        assert connection.getresponse().status == 200
        connection.close()

    def download(number: int) -> None:
        with requests.get(f"{served.url}{_PROXY}/0/x/{number}", stream=True, timeout=600) as answer:
            assert sum(len(chunk) for chunk in answer.iter_content(1 << 20)) == megabytes << 20

    for step in (upload, download, upload):
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(step, range(8)))


def _is_release() -> bool:
    return binary().parent.name == "release"


def _most_kb() -> int:
    return _MOST_KB if _is_release() else _MOST_KB + _MORE_CODE_KB


def test_memory_stays_below_64_mb_while_8_clients_move_files(served: Served):
    _move_at_once(served, 32)
    assert served.peak_kb() < _most_kb()


@pytest.mark.slow
def test_memory_stays_below_64_mb_while_8_clients_move_a_gigabyte_each(served: Served):
    _move_at_once(served, 1_024)
    assert served.peak_kb() < _most_kb()


@pytest.mark.slow
def test_a_thousand_files(kept: Served, run_kept: mlflow.ActiveRun, tmp_path: Path):
    for number in range(1_000):
        path = tmp_path / "many" / str(number % 3) / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    mlflow.log_artifacts(str(tmp_path / "many"), "many")
    fetched = Path(MlflowClient().download_artifacts(run_kept.info.run_id, "many", str(tmp_path)))
    assert sorted(int(path.read_text()) for path in fetched.rglob("*.txt")) == list(range(1_000))
