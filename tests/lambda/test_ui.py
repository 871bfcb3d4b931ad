"""The user interface as served by its function on Lambda: `/` and the files below `/static-files`.
"""

import base64
import gzip
import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.runtime_api import LONGEST_BYTES

from .conftest import LocalLambda

_GZIP = {"Accept-Encoding": "gzip, deflate, br"}
_YEAR = "public, max-age=31536000, immutable"


@pytest.fixture
def url(gateway: str) -> str:
    """Returns the URL of the page."""
    return gateway


def _one(build: Path, pattern: str) -> str:
    """Returns the URL path of the only file in the build that matches a pattern."""
    return f"/static-files/{next(build.glob(pattern)).relative_to(build)}"


def test_the_page_is_never_kept(url: str):
    page = requests.get(f"{url}/", timeout=60)
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["Cache-Control"] == "no-store"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "object-src 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["X-Frame-Options"] == "SAMEORIGIN"
    # All files to which the page refers exist, including those that our server adds to it.
    named = re.findall(r'(?:src|href)="(?:\./)?(static-files/[^"]+)"', page.text)
    assert len(named) == 9 and {f"static-files/{name}" for name in ("absent.css", "absent.js", "preview.js", "session_renewal.js")} < set(named)
    for path in named:
        assert requests.get(f"{url}/{path}", timeout=60).status_code == 200, path


def test_the_preview_of_html_has_a_policy_of_its_own(url: str):
    preview = requests.get(f"{url}/static-files/preview.html", timeout=60)
    assert (preview.status_code, preview.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = preview.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; ") and "'self'" not in policy.replace("frame-ancestors 'self'", "")
    assert preview.headers["X-Frame-Options"] == "SAMEORIGIN" and preview.headers["Referrer-Policy"] == "no-referrer"


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


def test_the_program_of_the_page_is_kept(url: str, local_lambda: LocalLambda):
    path = _one(local_lambda.ui, "static/js/main.*.js")
    answer = requests.get(f"{url}{path}", headers=_GZIP, timeout=60)
    assert answer.content == (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()
    assert answer.headers["Cache-Control"] == _YEAR and answer.headers["Content-Type"].startswith("text/javascript")
    again = requests.get(f"{url}{path}", headers=_GZIP | {"If-None-Match": answer.headers["ETag"]}, timeout=60)
    assert (again.status_code, again.content) == (304, b"")


def test_a_picture_comes_as_it_is(url: str, local_lambda: LocalLambda):
    path = _one(local_lambda.ui, "static/media/*.png")
    answer = requests.get(f"{url}{path}", headers=_GZIP, timeout=60)
    assert answer.headers["Content-Type"] == "image/png" and "Content-Encoding" not in answer.headers
    assert answer.content == (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()


@pytest.mark.parametrize("pattern", ["static/js/main.*.js", "static/js/bundles.*.js", "static/css/main.*.css", "static/media/*.png", "favicon.ico"])
@pytest.mark.parametrize("accepts", ["gzip, deflate, br", "identity"])
def test_what_the_function_hands_to_the_gateway(local_lambda: LocalLambda, invoke_raw: Callable[..., Any], pattern: str, accepts: str):
    """Checks that files that are not text are base64-encoded, and that the largest file fits into a
    response, with or without compression.
    """
    path = _one(local_lambda.ui, pattern)
    answer = invoke_raw("ui", "page-file", {"/static-files/manifest.json": path, "gzip, deflate, br": accepts})
    content = (local_lambda.ui / path.removeprefix("/static-files/")).read_bytes()
    body = base64.b64decode(answer["body"], validate=True) if answer["isBase64Encoded"] else answer["body"].encode()
    is_compressed = answer["headers"].get("content-encoding") == "gzip"
    assert is_compressed == (accepts != "identity" and path.endswith((".js", ".css")))
    assert (gzip.decompress(body) if is_compressed else body) == content
    assert answer["isBase64Encoded"] or not (is_compressed or path.endswith((".png", ".ico")))
    assert answer["statusCode"] == 200 and len(json.dumps(answer, ensure_ascii=False).encode()) < LONGEST_BYTES


def test_each_bundle_fits_into_a_response(local_lambda: LocalLambda, invoke_raw: Callable[..., Any]):
    """Checks the size of bundles without compression, as a proxy may request them, and with the
    overhead of base64.
    """
    bundles = sorted((local_lambda.ui / "static/js").glob("bundle.*.js"))
    assert len(bundles) > 10
    for bundle in bundles:
        path = f"/static-files/static/js/{bundle.name}"
        answer = invoke_raw("ui", "page-file", {"/static-files/manifest.json": path, "gzip, deflate, br": "identity"})
        assert answer["statusCode"] == 200 and answer["headers"]["cache-control"] == _YEAR
        assert answer["body"].encode() == bundle.read_bytes()
        assert len(base64.b64encode(bundle.read_bytes())) < LONGEST_BYTES


@pytest.mark.parametrize(
    "path", ["../version", "%2e%2e/version", "..%2fversion", "%2e%2e%2fversion", "static/../../version", "..%5cversion", "/version", ""]
)
def test_nothing_beside_the_build_is_served(url: str, path: str):
    # `requests` cannot be used, because it removes the dots.
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", f"/static-files/{path}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    assert 400 <= answer.status < 500, (answer.status, body)
    assert b"not to be served" not in body
