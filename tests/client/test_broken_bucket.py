"""Tests that a bucket that never responds, breaks off, or is not S3 causes an error in time, and
that no connection or memory is held.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.broken_s3 import ANSWERS, broken_s3
from tests.support.processes import wait_until
from tests.support.servers import ServerlessMlflow, subject_is_stock_mlflow

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="needs the bucket of this project's server")

_SERVED = "/api/2.0/mlflow-artifacts"
#: Maximum time of a request. The server retries for 12 s, and the last attempt takes up to 5 s. A
#: function's timeout is 29 s.
_PATIENCE_SECONDS = 29
#: Maximum time of completing an upload.
_JOINING_SECONDS = 50
#: Maximum memory of a server: 64 MB, and 20 MB of code of a development build.
_MOST_KB = 84 * 1024
_PARTS = {"path": "x", "upload_id": "nonce.id", "parts": [{"part_number": 1, "etag": "e"}]}
_REQUESTS = [
    ("GET", "artifacts?path=0", {}),
    ("GET", "artifacts/0/x", {}),
    ("GET", "presigned/0/x", {}),
    ("PUT", "artifacts/0/x", {"data": b"small"}),
    ("DELETE", "artifacts/0/x", {}),
    ("POST", "mpu/create/0", {"json": {"path": "x", "num_parts": 2}}),
    ("POST", "mpu/complete/0", {"json": _PARTS}),
    ("POST", "mpu/abort/0", {"json": _PARTS}),
]


#: Kinds of failure that take 15 s each, mostly spent waiting.
_SLOW = {"the beginning of a head", "half a body"}
#: Requests except those that are retried for 45 s if there is no response.
_SOON = [request for request in _REQUESTS if not request[1].startswith("mpu/complete")]


def _cases() -> Iterator[Any]:
    yield pytest.param("nothing", _SOON, id="nothing")
    yield pytest.param("nothing", _REQUESTS, id="nothing, whatever is asked", marks=pytest.mark.slow)
    for kind in ANSWERS:
        if kind != "nothing":
            yield pytest.param(kind, _REQUESTS, id=kind, marks=[pytest.mark.slow] * (kind in _SLOW))


@pytest.mark.parametrize(("kind", "sent"), _cases())
def test_an_error_in_time_and_nothing_is_held(kind: str, sent: list[tuple[str, str, dict]], tmp_path: Path):
    with broken_s3(kind) as s3:
        options = ("--artifacts-destination", "s3://bucket/prefix")
        server = ServerlessMlflow(
            tmp_path / "server", True, options, artifact_root="mlflow-artifacts:/", environment=s3.environment
        )
        try:
            def ask(request: tuple[str, str, dict]) -> None:
                method, path, content = request
                begin = time.monotonic()
                answer = requests.request(method, f"{server.url}{_SERVED}/{path}", timeout=60, allow_redirects=False, **content)
                seconds = time.monotonic() - begin
                assert answer.status_code in (500, 503), (request, answer.status_code, answer.text)
                assert answer.json()["error_code"] in ("INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE"), (request, answer.text)
                assert s3.url.removeprefix("http://") not in answer.text and "Sign in" not in answer.text, answer.text
                most = _JOINING_SECONDS if path.startswith("mpu/complete") else _PATIENCE_SECONDS
                assert seconds < most, (request, seconds)

            with ThreadPoolExecutor(4 * len(sent)) as threads:
                asked = [threads.submit(ask, request) for request in 4 * sent]
                # The server responds to another request while these requests wait for a bucket that
                # never responds.
                assert requests.get(f"{server.url}/health", timeout=60).status_code == 200
                assert not (ANSWERS[kind].endswith(b"...") and all(each.done() for each in asked))
                for each in asked:
                    each.result()
            assert s3.asked >= len(asked)
            wait_until(lambda: s3.held() == 0, "end of all connections to the bucket", server.process)
            assert server.process.peak_kb() < _MOST_KB
        finally:
            server.stop()
