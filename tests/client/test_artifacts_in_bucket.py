"""Tests of artifacts that clients send directly to a bucket with presigned URLs.
`test_artifact_attacks.py` tests the paths and URLs that must not be accessible.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import botocore.auth
import mlflow
import pytest
import requests
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from mlflow import MlflowClient
from mlflow.utils.server_info import _clear_server_info_cache

from tests.support.http import send_as_it_is
from tests.support.s3 import KEY_ID, REGION, SECRET, Bucket, LocalS3
from tests.support.servers import ServerlessMlflow, subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="inspects the bucket of this project's server")

_API = "/api/2.0/mlflow"
_SERVED = "/api/2.0/mlflow-artifacts"
_MB = 1 << 20


class Server:
    """A server with its artifacts below `prefix/` of a bucket. Objects next to it must not be
    accessible.
    """

    def __init__(self, s3: LocalS3, name: str, directory: Path, *options: str, root: str = "mlflow-artifacts:/"):
        self.bucket: Bucket = s3.make_bucket(name)
        for key in ("secret", "prefix-of-another/secret", "outside/secret"):
            self.bucket.put(key, b"secret of another")
        options = ("--artifacts-destination", f"s3://{name}/prefix", *options)
        self.server = ServerlessMlflow(
            directory, in_memory=True, options=options, artifact_root=root.format(name), environment=s3.environment
        )
        self.url = self.server.url
        mlflow.set_tracking_uri(self.url)
        _clear_server_info_cache()

    def keys(self) -> set[str]:
        """Returns the paths of the artifacts."""
        return {key.removeprefix("prefix/") for key in self.bucket.keys() if key.startswith("prefix/")}

    def call(self, method: str, path: str, **options) -> requests.Response:
        """Sends a request without following redirects."""
        return requests.request(method, f"{self.url}{path}", timeout=60, allow_redirects=False, **options)

    def run(self) -> tuple[str, str]:
        """Creates a run. Returns its id, and the path of its artifacts below the prefix."""
        run = MlflowClient(self.url).create_run("0")
        location = run.info.artifact_uri
        return run.info.run_id, location.removeprefix("mlflow-artifacts:/").removeprefix(f"s3://{self.bucket.name}/prefix/")


@pytest.fixture
def server(s3: LocalS3, client: MlflowClient, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    options = getattr(request, "param", {})
    name = f"of-{abs(hash(request.node.name))}-{os.getpid()}"
    server = Server(s3, name, tmp_path / "server", *options.get("options", ()), root=options.get("root", "mlflow-artifacts:/"))
    yield server
    server.server.stop()


#: Clients write to the bucket directly, and only list artifacts through the server.
DIRECT = pytest.mark.parametrize("server", [{"root": "s3://{}/prefix"}], indirect=True)
PRESIGNED_ONLY = pytest.mark.parametrize("server", [{"options": ["--artifacts-presigned-only"]}], indirect=True)
_LIMIT = ["--max-artifact-size", str(6 * _MB)]
LIMITED = pytest.mark.parametrize("server", [{"options": _LIMIT}, {"options": _LIMIT, "root": "s3://{}/prefix"}], indirect=True)


def check_signature(url: str, method: str, headers: dict[str, str] | None = None) -> dict[str, str]:
    """Compares a presigned URL with the signature of AWS's own signer. Returns the query
    parameters.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    signed_at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - signed_at).total_seconds()) < 120
    own = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in query.items() if not name.startswith("X-Amz-"))
    plain = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{own}" if own else "")
    request = AWSRequest(method, plain, headers=headers or {})
    signer = botocore.auth.S3SigV4QueryAuth(Credentials(KEY_ID, SECRET), "s3", REGION, int(query["X-Amz-Expires"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: signed_at.replace(tzinfo=None))
        signer.add_auth(request)
    expected = dict(parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
    assert query == expected
    return query


def test_a_file_of_20_mb_goes_to_the_bucket_in_parts(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", str(4 * _MB))
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE", str(6 * _MB))
    monkeypatch.setenv("MLFLOW_MULTIPART_DOWNLOAD_CHUNK_SIZE", str(7 * _MB))
    content = os.urandom(20 * _MB + 1)
    (tmp_path / "é big.bin").write_bytes(content)
    run, path = server.run()
    MlflowClient().log_artifact(run, str(tmp_path / "é big.bin"), "dir")
    assert server.keys() == {f"{path}/dir/é big.bin"} and server.bucket.unfinished() == []
    # Four parts of 6 MB as configured for the client, instead of five as the server would send: the
    # bytes did not pass through the server.
    etag = server.bucket.s3.client().head_object(Bucket=server.bucket.name, Key=f"prefix/{path}/dir/é big.bin")["ETag"]
    assert etag.endswith('-4"')
    fetched = mlflow.artifacts.download_artifacts(run_id=run, artifact_path="dir/é big.bin", dst_path=str(tmp_path / "fetched"))
    assert Path(fetched).read_bytes() == content


def test_a_client_that_fails_at_a_part_leaves_nothing(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1")
    monkeypatch.setattr("mlflow.store.artifact.http_artifact_repo.read_chunk", lambda *_: 1 / 0)
    (tmp_path / "file").write_bytes(b"x")
    run, _ = server.run()
    with pytest.raises(Exception, match="at least one part"):
        MlflowClient().log_artifact(run, str(tmp_path / "file"))
    assert server.keys() == set() and server.bucket.unfinished() == []


def _start_upload(server: Server, path: str, parts: int = 2) -> dict:
    directory, name = path.rsplit("/", 1)
    answer = server.call("POST", f"{_SERVED}/mpu/create/{directory}", json={"path": f"/home/me/{name}", "num_parts": parts})
    assert answer.status_code == 200, answer.text
    return answer.json()


def _end_upload(server: Server, step: str, path: str, upload_id: str, parts: list[dict] | None = None) -> requests.Response:
    directory, name = path.rsplit("/", 1)
    body = {"path": name, "upload_id": upload_id} | ({"parts": parts} if parts is not None else {})
    return server.call("POST", f"{_SERVED}/mpu/{step}/{directory}", json=body)


def _send_parts(upload: dict, contents: list[bytes]) -> list[dict]:
    sent = []
    for credential, content in zip(upload["credentials"], contents, strict=True):
        answer = requests.put(credential["url"], data=content, timeout=60)
        answer.raise_for_status()
        sent.append({"part_number": credential["part_number"], "etag": answer.headers["ETag"], "url": credential["url"]})
    return sent


def test_parts_are_seen_when_they_are_complete_and_completing_may_be_repeated(server: Server):
    contents = [b"a" * (5 * _MB), b"end"]
    upload = _start_upload(server, "0/x/file")
    for credential in upload["credentials"]:
        query = check_signature(credential["url"], "PUT")
        assert (query["X-Amz-SignedHeaders"], query["X-Amz-Expires"]) == ("host", "3600")
    sent = _send_parts(upload, contents)
    assert server.call("GET", _SERVED + "/artifacts?path=0/x").json() == {}
    assert server.call("GET", _SERVED + "/artifacts/0/x/file").status_code == 404
    for _ in range(2):
        assert _end_upload(server, "complete", "0/x/file", upload["upload_id"], sent[::-1]).json() == {}
        assert server.bucket.get("prefix/0/x/file") == b"".join(contents)
    assert _end_upload(server, "abort", "0/x/file", upload["upload_id"]).json() == {}
    assert server.keys() == {"0/x/file"}


def test_an_upload_that_is_aborted_is_gone(server: Server):
    upload = _start_upload(server, "0/x/file", 1)
    sent = _send_parts(upload, [b"x"])
    assert len(server.bucket.unfinished()) == 1
    for _ in range(2):
        assert _end_upload(server, "abort", "0/x/file", upload["upload_id"]).json() == {}
    assert server.bucket.unfinished() == []
    # Moto responds with an error of its own here, unlike S3.
    assert _end_upload(server, "complete", "0/x/file", upload["upload_id"], sent).status_code in (404, 503)
    assert server.keys() == set()


def test_uploads_that_make_no_sense_are_refused(server: Server):
    for parts in (0, -1, 10_001):
        answer = server.call("POST", f"{_SERVED}/mpu/create/0/x", json={"path": "f", "num_parts": parts})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert server.bucket.unfinished() == []
    upload = _start_upload(server, "0/x/file", 1)
    _send_parts(upload, [b"x"])
    for parts in ([{"part_number": 0, "etag": "x"}], [{"part_number": 1, "etag": "other"}], [{"part_number": 2, "etag": "x"}]):
        answer = _end_upload(server, "complete", "0/x/file", upload["upload_id"], parts)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), answer.text
    for name in ("", "x", "x."):
        answer = _end_upload(server, "complete", "0/x/file", name, [{"part_number": 1, "etag": "x"}])
        assert answer.status_code == 404, answer.text
        assert _end_upload(server, "abort", "0/x/file", name).json() == {}
    assert server.keys() == set()


def test_a_download_is_sent_to_the_bucket_for_a_few_minutes(server: Server):
    server.call("PUT", f"{_SERVED}/artifacts/0/x/page%20%C3%A9.html", data=b"<p>").raise_for_status()
    answer = server.call("GET", f"{_SERVED}/artifacts/0/x/page%20%C3%A9.html")
    assert (answer.status_code, answer.content, answer.headers["Cache-Control"]) == (307, b"", "no-store")
    query = check_signature(answer.headers["Location"], "GET")
    assert query["X-Amz-Expires"] == "300"
    # Content that a browser might execute is served as plain bytes, for saving.
    assert query["response-content-type"] == "application/octet-stream"
    assert query["response-content-disposition"].startswith("attachment; filename=")
    found = requests.get(answer.headers["Location"], timeout=60)
    assert found.content == b"<p>" and found.headers["Content-Disposition"].startswith("attachment")
    presigned = server.call("GET", f"{_SERVED}/presigned/0/x/page%20%C3%A9.html").json()
    assert (presigned["file_size"], presigned["headers"]) == (3, {})
    check_signature(presigned["url"], "GET")
    for path in ("none", "0/x", "0", "0/x/page%20%C3%A9.html/below"):
        for kind in ("artifacts", "presigned"):
            status = 400 if path in ("0/x", "0") else 404
            assert server.call("GET", f"{_SERVED}/{kind}/{path}").status_code == status, path


def test_lists_have_pages_and_directories(server: Server):
    server.bucket.put_many(f"prefix/0/many/{number:04}" for number in range(1_005))
    server.bucket.put("prefix/0/many/sub/a + b&c", b"12")
    for strange in ("prefix/0/many/", "prefix/0/many//x", "prefix/0/many/../x"):
        server.bucket.put(strange)
    files = server.call("GET", _SERVED + "/artifacts?path=0/many").json()["files"]
    assert [file["path"] for file in files] == [f"{number:04}" for number in range(1_005)] + ["sub"]
    assert files[-1] == {"path": "sub", "is_dir": True}
    files = server.call("GET", _SERVED + "/artifacts?path=0/many/sub").json()["files"]
    assert files == [{"path": "a + b&c", "is_dir": False, "file_size": 2}]
    assert server.call("DELETE", _SERVED + "/artifacts/0/many").json() == {}
    assert server.keys() == set()
    assert "secret" in server.bucket.keys()


def test_deleting_a_file_or_directory_leaves_its_neighbours(server: Server):
    for key in ("a", "a/b", "a/c/d", "ab", "a b"):
        server.bucket.put(f"prefix/0/{key}")
    assert server.call("DELETE", _SERVED + "/artifacts/0/a/c").json() == {}
    assert server.keys() == {"0/a", "0/a/b", "0/ab", "0/a b"}
    assert server.call("DELETE", _SERVED + "/artifacts/0/a").json() == {}
    assert server.keys() == {"0/ab", "0/a b"}
    assert send_as_it_is(server.url, "DELETE", f"{_SERVED}/artifacts/.")[0] == 400


@DIRECT
def test_what_the_interface_asks_for_of_runs_and_models(server: Server):
    client = MlflowClient()
    run, path = server.run()
    # Written directly by clients.
    server.bucket.put(f"prefix/{path}/sub/a.txt", b"text")
    listed = server.call("GET", f"{_API}/artifacts/list", params={"run_id": run}).json()
    assert listed == {"root_uri": f"s3://{server.bucket.name}/prefix/{path}", "files": [{"path": "sub", "is_dir": True}]}
    listed = server.call("GET", f"{_API}/artifacts/list", params={"run_id": run, "path": "sub"}).json()
    assert listed["files"] == [{"path": "sub/a.txt", "is_dir": False, "file_size": 4}]
    query = {"run_uuid": run, "path": "sub/a.txt"}
    assert requests.get(f"{server.url}/get-artifact", query, timeout=60).content == b"text"
    upload = f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=ui.txt"
    assert server.call("POST", upload, data=b"from the page").status_code == 200
    assert server.bucket.get(f"prefix/{path}/ui.txt") == b"from the page"

    model = client.create_logged_model("0", name="m")
    of_model = model.artifact_location.removeprefix(f"s3://{server.bucket.name}/")
    server.bucket.put(f"{of_model}/MLmodel", b"flavors: {}\n")
    directories = f"{_API}/logged-models/{model.model_id}/artifacts/directories"
    assert server.call("GET", directories).json()["files"] == [{"path": "MLmodel", "is_dir": False, "file_size": 12}]
    client.create_registered_model("r")
    client.create_model_version("r", f"models:/{model.model_id}", model_id=model.model_id)
    for endpoint, query in [
        (f"/ajax-api/2.0/mlflow/logged-models/{model.model_id}/artifacts/files", {"artifact_file_path": "MLmodel"}),
        ("/model-versions/get-artifact", {"name": "r", "version": "1", "path": "MLmodel"}),
    ]:
        assert requests.get(f"{server.url}{endpoint}", query, timeout=60).content == b"flavors: {}\n"
        # Pages of MLflow 3.18 send this request.
        presigned = server.call("GET", endpoint, params=query | {"presigned": "true"}).json()
        assert (presigned["file_size"], requests.get(presigned["url"], timeout=60).content) == (12, b"flavors: {}\n")


@DIRECT
def test_presigned_urls_of_runs_and_models(server: Server):
    run, path = server.run()
    model = MlflowClient().create_logged_model("0", name="m")
    for owner in ({"run_id": run}, {"model_id": model.model_id}):
        body = owner | {"path": "dir/image.png", "expiration": 60}
        signed = server.call("POST", f"{_API}/artifacts/presigned-upload-url", json=body).json()
        assert signed["headers"] == {"Content-Type": "image/png"}
        query = check_signature(signed["presigned_url"], "PUT", signed["headers"])
        assert (query["X-Amz-Expires"], query["X-Amz-SignedHeaders"]) == ("60", "content-type;host")
        requests.put(signed["presigned_url"], b"image", headers=signed["headers"], timeout=60).raise_for_status()
    assert server.bucket.get(f"prefix/{path}/dir/image.png") == b"image"
    body = {"run_id": run, "path": "dir/image.png", "expiration": 604_800}
    signed = server.call("POST", f"{_API}/artifacts/presigned-download-url", json=body).json()
    assert signed["file_size"] == 5
    # An hour, regardless of the requested duration.
    assert check_signature(signed["presigned_url"], "GET")["X-Amz-Expires"] == "3600"
    assert requests.get(signed["presigned_url"], timeout=60).content == b"image"
    missing = server.call("POST", f"{_API}/artifacts/presigned-download-url", json={"run_id": run, "path": "none"})
    assert (missing.status_code, missing.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


@LIMITED
def test_the_size_of_an_artifact_is_bounded_on_each_way(server: Server):
    assert server.call("PUT", _SERVED + "/artifacts/0/x/most", data=b"x" * (6 * _MB)).status_code == 200
    answer = server.call("PUT", _SERVED + "/artifacts/0/x/more", data=b"x" * (6 * _MB + 1))
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    upload = _start_upload(server, "0/x/parts", 2)
    sent = _send_parts(upload, [b"x" * (5 * _MB), b"x" * (2 * _MB)])
    answer = _end_upload(server, "complete", "0/x/parts", upload["upload_id"], sent)
    assert (answer.status_code, answer.json()["message"]) == (400, f"Artifact size is too large. Max size is {6 * _MB} bytes.")
    answer = server.call("POST", f"{_SERVED}/mpu/create/0/x", json={"path": "parts", "num_parts": 3})
    assert answer.status_code == 400, answer.text
    upload = _start_upload(server, "0/x/parts", 2)
    sent = _send_parts(upload, [b"x" * (5 * _MB), b"x" * _MB])
    # The server takes the lengths of parts from the bucket's list, by number and ETag. It refuses an
    # ETag that is not in the list, for example that of a part that was replaced in the meantime.
    later = [sent[0], sent[1] | {"etag": '"00000000000000000000000000000000"'}]
    answer = _end_upload(server, "complete", "0/x/parts", upload["upload_id"], later)
    assert (answer.status_code, "do not match the uploaded parts" in answer.json()["message"]) == (400, True), answer.text
    assert _end_upload(server, "complete", "0/x/parts", upload["upload_id"], sent).status_code == 200
    run, path = server.run()
    page = f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=page"
    assert server.call("POST", page, data=b"x" * (6 * _MB)).status_code == 200
    for body in (b"x" * (6 * _MB + 1), iter([b"x" * (6 * _MB), b"x"])):
        answer = server.call("POST", page, data=body)
        assert (answer.status_code, answer.json()["message"]) == (400, f"Artifact size is too large. Max size is {6 * _MB} bytes.")
    # Uploads to a single presigned URL cannot be limited. The server offers none for its proxy, and
    # none for a bucket if there is a limit.
    for owner in ({"run_id": run}, {"model_id": MlflowClient().create_logged_model("0", name="m").model_id}):
        answer = server.call("POST", f"{_API}/artifacts/presigned-upload-url", json=owner | {"path": "x"})
        assert answer.status_code in (400, 501) and "presigned_url" not in answer.text, answer.text
    assert server.bucket.get(f"prefix/{path}/page") == b"x" * (6 * _MB)
    assert server.keys() == {"0/x/most", "0/x/parts", f"{path}/page"} and server.bucket.unfinished() == []


@PRESIGNED_ONLY
def test_requests_of_a_client_that_uses_presigned_urls_only(server: Server):
    """Sends the requests of MLflow 3.18's client: a multipart upload even for an empty file, and no
    content through the server.
    """
    info = server.call("GET", "/api/3.0/mlflow/server-info").json()
    switches = (
        "artifacts_presigned_only", "multipart_uploads_enabled", "multipart_downloads_enabled", "artifact_serving_enabled",
        "presigned_upload_run_id_supported", "presigned_upload_model_id_supported", "model_artifact_presigned_downloads_supported",
    )
    assert all(info[switch] is True for switch in switches), info
    _, path = server.run()
    for name, content in (("empty", b""), ("small.json", b"{}")):
        upload = _start_upload(server, f"{path}/{name}", 1)
        sent = _send_parts(upload, [content])
        assert _end_upload(server, "complete", f"{path}/{name}", upload["upload_id"], sent).status_code == 200
        presigned = server.call("GET", f"{_SERVED}/presigned/{path}/{name}").json()
        assert (presigned["file_size"], requests.get(presigned["url"], timeout=60).content) == (len(content), content)
    # The proxy remains available for older clients.
    assert server.call("PUT", f"{_SERVED}/artifacts/{path}/old", data=b"x").status_code == 200
    assert requests.get(f"{server.url}{_SERVED}/artifacts/{path}/old", timeout=60).content == b"x"


def test_nothing_is_said_of_presigned_urls_only_where_nobody_asked(server: Server):
    info = server.call("GET", "/api/3.0/mlflow/server-info").json()
    assert (info["artifacts_presigned_only"], info["multipart_uploads_enabled"]) == (False, True)


def test_a_bucket_that_is_not_there_says_nothing_of_itself(s3: LocalS3, client: MlflowClient, tmp_path: Path):
    options = ("--artifacts-destination", "s3://no-such-bucket/prefix")
    server = ServerlessMlflow(
        tmp_path / "server", in_memory=True, options=options, artifact_root="mlflow-artifacts:/", environment=s3.environment
    )
    try:
        for method, path in (("PUT", "artifacts/0/x"), ("GET", "artifacts?path=0")):
            answer = requests.request(method, f"{server.url}{_SERVED}/{path}", data=b"x", timeout=60)
            assert (answer.status_code, answer.json()["error_code"]) == (500, "INTERNAL_ERROR")
            assert "bucket" not in answer.text.lower()
    finally:
        server.stop()
