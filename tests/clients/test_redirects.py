"""Tests that a signature applies to one URL only: the target of a redirect must not receive it,
whether on the same host or on another one.
"""

import io
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests
from mlflow_serverless_auth import SigV4

from tests.support.http_server import Answer, Received, serving

from .conftest import VERIFIER
from .gateway import strict

_PRESIGNED = "/bucket/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2Fb&X-Amz-Signature=abc"


class Chain:
    """A strict gateway that redirects to storage, and storage that records requests."""

    def __init__(self, stops: ExitStack):
        self.stored: list[Received] = []
        self.location = ""
        self.status = 307
        self.gateway = stops.enter_context(serving(strict(VERIFIER, self._redirect)))
        #: A different host from the client's point of view, but the same machine.
        self.storage = stops.enter_context(serving(self._store, host="localhost"))

    def _redirect(self, request: Received) -> Answer:
        if request.target == "/again":
            return 200, [], b""
        return self.status, [("Location", self.location)], b""

    def _store(self, request: Received) -> Answer:
        self.stored.append(request)
        if request.target == "/back":
            return 307, [("Location", f"{self.gateway}/again")], b""
        return 200, [], b"stored"


@pytest.fixture
def chain() -> Iterator[Chain]:
    with ExitStack() as stops:
        yield Chain(stops)


def _names(request: Received) -> set[str]:
    return {name.lower() for name, _ in request.headers}


def _has_no_signature(request: Received) -> bool:
    return not any(name == "authorization" or name.startswith("x-amz-") for name in _names(request))


@pytest.mark.parametrize("body", [None, b"content", io.BytesIO(b"content")])
def test_a_presigned_url_on_another_host(chain: Chain, auth: SigV4, body):
    chain.location = chain.storage + _PRESIGNED
    headers = {"Accept": "x/y"}
    answer = requests.put(f"{chain.gateway}/upload", data=body, headers=headers, auth=auth, timeout=60)
    assert (answer.status_code, answer.text, [step.status_code for step in answer.history]) == (200, "stored", [307])
    [stored] = chain.stored
    assert (stored.method, stored.target, stored.body) == ("PUT", _PRESIGNED, b"content" if body else b"")
    assert _has_no_signature(stored)
    assert stored.values("accept") == ["x/y"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_redirect(chain: Chain, auth: SigV4, status: int):
    chain.location, chain.status = chain.storage + _PRESIGNED, status
    assert requests.get(f"{chain.gateway}/download", auth=auth, timeout=60).text == "stored"
    assert _has_no_signature(chain.stored[0])


def test_another_port_of_the_same_host(chain: Chain, auth: SigV4):
    chain.location = chain.storage.replace("localhost", "127.0.0.1") + _PRESIGNED
    assert requests.get(f"{chain.gateway}/download", auth=auth, timeout=60).text == "stored"
    assert _has_no_signature(chain.stored[0])


def test_the_gateway_refuses_what_comes_back_to_it(chain: Chain, auth: SigV4):
    for location in ("/again", f"{chain.gateway}/again", f"{chain.storage}/back"):
        chain.location = location
        answer = requests.get(f"{chain.gateway}/", auth=auth, timeout=60)
        assert answer.status_code == 403
        assert "0 headers authorization" in answer.text


def test_a_redirect_that_is_followed_by_hand(chain: Chain, auth: SigV4):
    chain.location = chain.storage + _PRESIGNED
    answer = requests.get(f"{chain.gateway}/", auth=auth, timeout=60, allow_redirects=False)
    assert not any(name.lower().startswith(("authorization", "x-amz-")) for name in answer.next.headers)


def test_the_next_request_of_a_session_is_signed_again(chain: Chain, auth: SigV4):
    chain.location = chain.storage + _PRESIGNED
    with requests.Session() as session:
        session.auth = auth
        assert session.get(f"{chain.gateway}/download", timeout=60).text == "stored"
        assert session.get(f"{chain.gateway}/again", timeout=60).status_code == 200
