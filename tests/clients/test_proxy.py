"""Tests that `mlflow-serverless proxy` signs like the package, and sends signatures only to the
API.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.proxy import Opened, proxying

from .conftest import REGION, VERIFIER
from .test_redirects import Chain, chain  # noqa: F401

_CALLER = {
    "AWS_ACCESS_KEY_ID": VERIFIER.access_key,
    "AWS_SECRET_ACCESS_KEY": VERIFIER.secret_key,
    "AWS_SESSION_TOKEN": VERIFIER.token,
    "AWS_DEFAULT_REGION": REGION,
}
#: Id of a user other than that of this process.
_NOBODY = 65_534


@pytest.fixture(scope="module")
def opened(echoing: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with proxying(echoing, _CALLER, tmp_path_factory.mktemp("proxy")) as url:
        yield Opened(url)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/plain", []),
        ("/a b=c@é.txt", []),
        ("/a%2Fb/~_-.!$&'()*+,;:", []),
        ("/api/2.0/mlflow/x", [["filter", "name = 'a b' AND x != '+%&'"], ["order_by", "b"], ["order_by", "a"], ["empty", ""]]),
        ("/api/2.0/mlflow/x", [["é@=/?", "日本 ~"]]),
    ],
)
def test_paths_and_parameters_mean_what_they_meant(opened: Opened, path: str, query: list[list[str]]):
    answer = opened.get(opened.url + path, params=[tuple(pair) for pair in query], timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"path": requests.utils.unquote(path), "query": query, "body": ""}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("body", ["", "{}", "\x00ÿ"])
def test_bodies_are_signed(opened: Opened, method: str, body: str):
    headers = {"Content-Type": "text/plain", "X-MLFLOW-WORKSPACE": "team", "X-Amz-Meta": "x"}
    answer = opened.request(method, f"{opened.url}/x", data=body.encode("latin-1"), headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["body"]) == (200, body), answer.text


@pytest.mark.parametrize("body", [b"", b"content"])
def test_no_signature_follows_to_the_bucket(chain: Chain, body: bytes, tmp_path: Path):  # noqa: F811
    chain.location = f"{chain.storage}/bucket/a%20b?X-Amz-Signature=abc&x=a%2Fb"
    with proxying(chain.gateway, _CALLER, tmp_path) as url:
        opened = Opened(url)
        answer = opened.put(f"{opened.url}/upload", body, timeout=60)
        assert (answer.status_code, answer.content, answer.history) == (200, b"stored", [])
        # The last request, because the first one was for the page.
        stored = chain.stored[-1]
        assert (stored.target, stored.body) == ("/bucket/a%20b?X-Amz-Signature=abc&x=a%2Fb", body)
        names = {name.lower() for name, _ in stored.headers}
        assert not {name for name in names if name in ("authorization", "cookie", "origin") or name.startswith("x-amz-")}
        assert stored.values("content-length") == [str(len(body))]


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root can switch to another user")
def test_another_user_of_the_machine_gets_no_answer(opened: Opened):
    host, _, port = opened.url.removeprefix("http://").partition(":")
    request = f"GET / HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nConnection: close\\r\\n\\r\\n"
    script = f"exec 3<>/dev/tcp/{host}/{port}; printf '{request}' >&3; cat <&3"

    def answer(user: int) -> bytes:
        done = subprocess.run(["/bin/bash", "-c", script], user=user, cwd="/", capture_output=True, timeout=60)
        return done.stdout

    assert answer(0).startswith(b"HTTP/1.1 403 ")
    assert answer(_NOBODY) == b""
