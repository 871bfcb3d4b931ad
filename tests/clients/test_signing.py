"""Tests of signing: the signed parts of a request, the sources of credentials and region, and
requests that cannot be signed.
"""

import io
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from botocore.credentials import RefreshableCredentials
from botocore.session import Session
from mlflow_serverless_auth import SigningError, SigV4

from tests.support.http_server import serving

from .conftest import REGION, VERIFIER
from .gateway import echo, strict
from .verifier import Verifier

_AWKWARD = ["a b", "a+b", " ", "+", "größer 🎉", "100%", "%2B", "%zz", "a/b", "a&b=c", "a=b", "", "~-_.!*'()", "a\nb"]
_AWKWARD += ["?#", '"\\<>']


def _prepared(url: str, auth: SigV4, method: str = "GET", **options) -> requests.PreparedRequest:
    return requests.Request(method, url, auth=auth, **options).prepare()


def _sent(method: str, url: str, auth: SigV4, **options) -> dict:
    answer = requests.request(method, url, auth=auth, timeout=60, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("text", _AWKWARD)
def test_parameters_arrive_as_they_are(echoing: str, auth: SigV4, text: str):
    pairs = [("name", text), (f"key {text}", "value"), ("order_by", f"{text} DESC"), ("order_by", text)]
    assert _sent("GET", echoing, auth, params=pairs)["query"] == [list(pair) for pair in pairs]


def test_equal_names_keep_their_order(echoing: str, auth: SigV4):
    pairs = [("order_by", "z"), ("order_by", "a"), ("b", "1"), ("order_by", "z"), ("a", "1")]
    assert _sent("GET", echoing, auth, params=pairs)["query"] == [list(pair) for pair in pairs]


@pytest.mark.parametrize("query", ["a", "a=", "=a", "a==b", "&&a=1&", "a=%7e%7E", "a=b;c=d", "a=%ff"])
def test_queries_in_any_form(echoing: str, auth: SigV4, query: str):
    plain = requests.Request("GET", f"{echoing}/?{query}").prepare().url
    with serving(echo) as open_to_all:
        expected = requests.get(plain.replace(echoing, open_to_all), timeout=60).json()
    assert _sent("GET", f"{echoing}/?{query}", auth) == expected


@pytest.mark.parametrize("segment", [text for text in _AWKWARD if text])
def test_paths_arrive_as_they_are(echoing: str, auth: SigV4, segment: str):
    assert _sent("GET", f"{echoing}/files/{quote(segment, safe='')}/x", auth)["path"] == f"/files/{segment}/x"


@pytest.mark.parametrize("path", ["/a+b@c:d", "/a b", "/a/", "/%41/~", "/a//b", ""])
def test_paths_in_any_form(echoing: str, auth: SigV4, path: str):
    _sent("GET", echoing + path, auth)


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/a/%2e%2e", "/"),
        ("/a/b/%2E%2e", "/a/"),
        ("/%2e%2e/%2e%2e/a", "/a"),
        ("/a/%2e", "/a/"),
        ("/a/%2e/b/%2e%2e/c/", "/a/c/"),
    ],
)
def test_paths_that_go_up(echoing: str, auth: SigV4, path: str, resolved: str):
    assert _sent("GET", echoing + path, auth)["path"] == resolved


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
# Explicit ids, because pytest would include each body in the name of its test.
@pytest.mark.parametrize(
    "body",
    [None, b"", "", b"\x00\xff", "größer", b"a" * 3_000_000],
    ids=["none", "no bytes", "no text", "bytes", "text", "3 MB"],
)
def test_bodies(echoing: str, auth: SigV4, method: str, body: bytes | str | None):
    expected = body.encode() if isinstance(body, str) else body or b""
    assert _sent(method, echoing, auth, data=body)["body"] == expected.decode("latin-1")


@pytest.mark.parametrize("options", [{"json": {"a": [1, "ü"]}}, {"data": {"a": "b c"}}, {"files": {"file": b"content"}}])
def test_bodies_that_requests_makes(echoing: str, auth: SigV4, options: dict):
    assert _sent("POST", echoing, auth, **options)["body"]


@pytest.mark.parametrize("content", [b"", b"content", b"\x00\xff" * 1_500_000], ids=["empty", "small", "3 MB"])
def test_files(echoing: str, auth: SigV4, tmp_path: Path, content: bytes):
    file = tmp_path / "file"
    file.write_bytes(content)
    with file.open("rb") as opened:
        assert _sent("PUT", echoing, auth, data=opened)["body"] == content.decode("latin-1")


def test_an_empty_file_is_sent_with_its_length(echoing: str, auth: SigV4, tmp_path: Path):
    """Checks the length of an empty file, which `requests` alone would send with chunked encoding.
    """
    (tmp_path / "empty").write_bytes(b"")
    with (tmp_path / "empty").open("rb") as file:
        prepared = _prepared(f"{echoing}/files", auth, "PUT", data=file)
    assert prepared.headers["Content-Length"] == "0" and "Transfer-Encoding" not in prepared.headers
    assert requests.Session().send(prepared, timeout=60).json()["body"] == ""


def test_a_file_is_sent_from_where_it_stands(echoing: str, auth: SigV4):
    file = io.BytesIO(b"not sent, sent")
    file.seek(10)
    assert _sent("PUT", echoing, auth, data=file)["body"] == "sent"


def _stream() -> Iterator[bytes]:
    yield b"a"


@pytest.mark.parametrize(("body", "why"), [(_stream, "is read twice"), (lambda: io.StringIO("a"), "binary mode")])
def test_bodies_that_cannot_be_signed(auth: SigV4, body, why: str):
    with pytest.raises(SigningError, match=why):
        _prepared("http://127.0.0.1/", auth, "POST", data=body())


def test_what_proxies_change_is_not_signed(auth: SigV4):
    headers = {"User-Agent": "x", "Accept-Encoding": "gzip", "X-Forwarded-For": "x", "Via": "x", "X-Amzn-Trace-Id": "x"}
    headers |= {"X-Amz-Meta": "x", "Connection": "close", "X-MLFLOW-WORKSPACE": "x", "traceparent": "x"}
    request = _prepared("http://127.0.0.1/", auth, "POST", json={}, headers=headers)
    listed = re.search("SignedHeaders=([^,]*)", request.headers["Authorization"])
    assert listed[1] == "content-type;host;x-amz-date;x-amz-meta;x-amz-security-token"


def test_signing_again_replaces_the_signature(echoing: str, auth: SigV4):
    request = auth(_prepared(echoing, auth, headers={"Authorization": "Basic x", "x-amz-date": b"old"}))
    with requests.Session() as session:
        assert session.send(request, timeout=60).status_code == 200


def test_a_body_that_is_changed_afterwards_is_refused(echoing: str, auth: SigV4):
    request = _prepared(echoing, auth, "POST", data=b"signed")
    request.body = b"forged"
    with requests.Session() as session:
        assert session.send(request, timeout=60).status_code == 403


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("abc123.execute-api.eu-central-1.amazonaws.com", "eu-central-1"),
        ("ABC123.EXECUTE-API.US-GOV-WEST-1.AMAZONAWS.COM", "us-gov-west-1"),
        ("abc123.execute-api.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("abc123.execute-api.eu-west-2.api.aws", "eu-west-2"),
        ("vpce-1-x.execute-api.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("mlflow.example.com", REGION),
        ("abc.execute-api.eu-west-1.amazonaws.com.example.com", REGION),
        ("s3.eu-west-1.amazonaws.com", REGION),
    ],
)
def test_the_region_is_the_apis(auth: SigV4, host: str, region: str):
    scope = re.search("Credential=([^,]*)", _prepared(f"https://{host}/x", auth).headers["Authorization"])[1]
    assert scope.split("/")[2:] == [region, "execute-api", "aws4_request"]


def test_the_region_of_another_host(aws: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    url = "https://mlflow.example.com/"
    with pytest.raises(SigningError, match="mlflow.example.com/ does not name an AWS region. Set AWS_REGION"):
        _prepared(url, SigV4())
    (tmp_path / "config").write_text("[default]\nregion = eu-file-1\n")
    assert "/eu-file-1/" in _prepared(url, SigV4()).headers["Authorization"]
    monkeypatch.setenv("AWS_REGION", "eu-env-1")
    assert "/eu-env-1/" in _prepared(url, SigV4()).headers["Authorization"]


def test_no_credentials(monkeypatch: pytest.MonkeyPatch):
    auth = SigV4()
    monkeypatch.setenv("AWS_REGION", REGION)
    with pytest.raises(SigningError, match="There are no AWS credentials to sign the request with"):
        _prepared("http://127.0.0.1/", auth)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "AKID/" in _prepared("http://127.0.0.1/", auth).headers["Authorization"]


def test_credentials_of_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id = {VERIFIER.access_key}\naws_secret_access_key = {VERIFIER.secret_key}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_REGION", REGION)
    with serving(strict(Verifier(VERIFIER.access_key, VERIFIER.secret_key, REGION), echo)) as url:
        assert requests.get(url, auth=SigV4(), timeout=60).status_code == 200


def test_credentials_that_expire_are_renewed():
    """Checks that each request gets new credentials if the current ones are about to expire."""
    handed_out: list[str] = []

    def refresh() -> dict[str, str]:
        handed_out.append(f"token {len(handed_out)}")
        expiry = datetime.now(timezone.utc) + timedelta(seconds=1)
        return {"access_key": "AKID", "secret_key": "s", "token": handed_out[-1], "expiry_time": expiry.isoformat()}

    session = Session()
    session._credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "test")
    session.set_config_variable("region", REGION)
    auth = SigV4(session)
    tokens = [_prepared("http://127.0.0.1/", auth).headers["X-Amz-Security-Token"] for _ in range(3)]
    assert tokens == handed_out[1:] and len(set(tokens)) == 3
