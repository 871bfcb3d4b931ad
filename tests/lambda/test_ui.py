"""The user interface through its function, as Lambda runs it: what a browser asks for at `/` and below `/static-files`."""

import base64
import gzip
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.runtime_api import RunningFunction, running_function

from .conftest import REPOSITORY, LocalLambda

#: An answer of a function is no longer; neither is a body in base64 or with the escapes of JSON.
_LAMBDA_BYTES = 6 * 1024 * 1024
_GZIP = {"Accept-Encoding": "gzip, deflate, br"}
_YEAR = "public, max-age=31536000, immutable"
#: The function waits until it is built.
_PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def url(local_lambda: LocalLambda) -> str:
    """Of the page, where its function answers."""
    assert requests.get(f"{local_lambda.gateway}/", timeout=_PATIENCE_SECONDS).status_code == 200
    return local_lambda.gateway


@pytest.fixture(scope="module")
def function(local_lambda: LocalLambda, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFunction]:
    """The same function behind a runtime that reads answers to their end. `cargo lambda watch` confirms them before that, and a function
    that sees it first may send no more: of some MB, one in some ten never arrives."""
    log = tmp_path_factory.mktemp("function") / "ui.log"
    with running_function(REPOSITORY / "target/debug/ui", log, UI_DIRECTORY=str(local_lambda.ui)) as running:
        yield running


def _ask(function: RunningFunction, path: str, accepts: str = _GZIP["Accept-Encoding"], **headers: str) -> Any:
    """What the function hands to the gateway for a file."""
    event = (REPOSITORY / "events/page-file.json").read_text().replace("/static-files/manifest.json", path)
    event = json.loads(event.replace("gzip, deflate, br", accepts))
    event["headers"] |= headers
    return function.invoke(event)


def _one(build: Path, pattern: str) -> str:
    """The path of a file of the build as the page asks for it."""
    return f"/static-files/{next(build.glob(pattern)).relative_to(build)}"


def test_the_page_is_never_kept(url: str, function: RunningFunction):
    page = requests.get(f"{url}/", timeout=60)
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["Cache-Control"] == "no-store"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "object-src 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["X-Frame-Options"] == "SAMEORIGIN"
    # All that the page names is there, and what our server adds to it.
    named = re.findall(r'(?:src|href)="(?:\./)?(static-files/[^"]+)"', page.text)
    assert len(named) == 6 and "static-files/absent.css" in named and "static-files/absent.js" in named
    for path in named:
        assert _ask(function, f"/{path}")["statusCode"] == 200, path


def test_a_file_with_a_digest_in_its_name_is_kept_and_compressed(url: str, local_lambda: LocalLambda):
    path = _one(local_lambda.ui, "static/css/main.*.css")
    content = (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()
    answer = requests.get(f"{url}{path}", headers=_GZIP, timeout=60, stream=True)
    sent = answer.raw.read(decode_content=False)
    assert (answer.headers["Content-Encoding"], gzip.decompress(sent)) == ("gzip", content)
    assert answer.headers["Cache-Control"] == _YEAR and answer.headers["Content-Type"].startswith("text/css")
    again = requests.get(f"{url}{path}", headers=_GZIP | {"If-None-Match": answer.headers["ETag"]}, timeout=60)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["Cache-Control"] == _YEAR
    plain = requests.get(f"{url}{path}", headers={"Accept-Encoding": "identity"}, timeout=60)
    assert plain.content == content
    missing = requests.get(f"{url}{path.replace('main.', 'missing.')}", timeout=60)
    assert (missing.status_code, missing.headers["Cache-Control"]) == (404, "no-store")


def test_the_program_of_the_page_is_kept(local_lambda: LocalLambda, function: RunningFunction):
    path = _one(local_lambda.ui, "static/js/main.*.js")
    answer = _ask(function, path)
    headers = answer["headers"]
    assert headers["cache-control"] == _YEAR and headers["content-type"].startswith("text/javascript")
    again = _ask(function, path, **{"if-none-match": headers["etag"]})
    assert (again["statusCode"], again.get("body") or "") == (304, "")


def test_a_picture_comes_as_it_is(url: str, local_lambda: LocalLambda):
    path = _one(local_lambda.ui, "static/media/*.png")
    answer = requests.get(f"{url}{path}", headers=_GZIP, timeout=60)
    assert answer.headers["Content-Type"] == "image/png" and "Content-Encoding" not in answer.headers
    assert answer.content == (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()


@pytest.mark.parametrize("pattern", ["static/js/main.*.js", "static/css/main.*.css", "static/media/*.png", "favicon.ico"])
@pytest.mark.parametrize("accepts", ["gzip, deflate, br", "identity"])
def test_what_the_function_hands_to_the_gateway(local_lambda: LocalLambda, function: RunningFunction, pattern: str, accepts: str):
    """What is not text is in base64, and the largest file fits into an answer, compressed or not."""
    path = _one(local_lambda.ui, pattern)
    answer = _ask(function, path, accepts)
    content = (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()
    body = base64.b64decode(answer["body"], validate=True) if answer["isBase64Encoded"] else answer["body"].encode()
    is_compressed = answer["headers"].get("content-encoding") == "gzip"
    assert is_compressed == (accepts != "identity" and path.endswith((".js", ".css")))
    assert (gzip.decompress(body) if is_compressed else body) == content
    assert answer["isBase64Encoded"] or not (is_compressed or path.endswith((".png", ".ico")))
    assert answer["statusCode"] == 200 and len(json.dumps(answer, ensure_ascii=False).encode()) < _LAMBDA_BYTES


@pytest.mark.parametrize(
    "path", ["../version", "%2e%2e/version", "..%2fversion", "%2e%2e%2fversion", "static/../../version", "..%5cversion", "/version", ""]
)
def test_nothing_beside_the_build_is_served(url: str, path: str):
    # Not by `requests`, which takes the dots out.
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", f"/static-files/{path}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    assert 400 <= answer.status < 500, (answer.status, body)
    assert b"not to be served" not in body
