"""Tests of requests with tokens: those that `mlflow-serverless login` has stored, and those for which
the identity token of a job or pod is exchanged.
"""

import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from mlflow_serverless_auth import IdentityError, NotSupportedError, ServerlessAuth, SigningError, StoredTokenError
from mlflow_serverless_auth.auth import origin, server
from mlflow_serverless_auth.exchange import TokenExchange
from mlflow_serverless_auth.identity import Identity

from tests.support.http_server import Answer, Received, serving

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_YEAR_SECONDS = 365 * 86_400


class Server:
    """A server that exchanges every JWT for a token of its own, and accepts its latest token only."""

    def __init__(self, stops: ExitStack):
        self.exchanged: list[str] = []
        self.received: list[Received] = []
        self.expires_in = 3_600
        #: Response to exchanges, if they fail.
        self.failure: Answer | None = None
        self.location = ""
        #: Called before the server refuses a request.
        self.refusing: Callable[[], object] = lambda: None
        self.url = stops.enter_context(serving(self._answer))

    @property
    def latest(self) -> str:
        return f"token-{len(self.exchanged)}"

    def _answer(self, request: Received) -> Answer:
        path = urlsplit(request.target).path
        if path.endswith("/oauth/token"):
            return self._exchange(request)
        if path == "/identity":
            [authorization] = request.values("authorization")
            audience = parse_qs(urlsplit(request.target).query)["audience"][0]
            assert authorization == "Bearer of the job"
            return _json(200, {"value": f"jwt for {audience}"})
        self.received.append(request)
        if self.location:
            return 307, [("Location", self.location)], b""
        if request.values("authorization") != [f"Bearer {self.latest}"]:
            self.refusing()
            return 401, [], b""
        return 200, [], request.body

    def _exchange(self, request: Received) -> Answer:
        form = {name: value for name, [value] in parse_qs(request.body.decode()).items()}
        assert form["grant_type"] == _EXCHANGE
        if self.failure:
            return self.failure
        self.exchanged.append(form["subject_token"])
        return _json(200, {"access_token": self.latest, "token_type": "Bearer", "expires_in": self.expires_in})


def _json(status: int, content: dict) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps(content).encode()


@pytest.fixture
def remote() -> Iterator[Server]:
    with ExitStack() as stops:
        yield Server(stops)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides stored tokens and identities of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith(("MLFLOW_OIDC_", "ACTIONS_ID_TOKEN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function that stores a token like `mlflow-serverless login`."""

    def store(of: str, token: str, seconds: int = _YEAR_SECONDS) -> Path:
        file = tmp_path / "configuration/mlflow-serverless/tokens.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps({of: {"token": token, "user": "ann", "expires": int(time.time()) + seconds}}))
        temporary.chmod(0o600)
        temporary.replace(file)
        return file

    return store


def _tokens(remote: Server) -> list[str]:
    return [value for request in remote.received for value in request.values("authorization")]


def test_a_stored_token_is_sent_to_its_server_only(remote: Server, store: Callable[..., Path]):
    store(remote.url, "token-0")
    assert requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60).status_code == 200
    assert _tokens(remote) == ["Bearer token-0"]
    # The name is another origin, although it is the same server.
    with pytest.raises(SigningError, match="mlflow-serverless login"):
        requests.get(f"{remote.url.replace('127.0.0.1', 'localhost')}/api/x", auth=ServerlessAuth(), timeout=60)
    assert len(remote.received) == 1


def test_a_stored_token_that_has_expired_is_not_sent(remote: Server, store: Callable[..., Path]):
    store(remote.url, "token-0", seconds=-1)
    with pytest.raises(SigningError):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)
    assert remote.received == []


def test_a_file_that_others_can_read_is_refused(remote: Server, store: Callable[..., Path]):
    store(remote.url, "token-0").chmod(0o644)
    with pytest.raises(StoredTokenError, match="Run: chmod 600"):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)
    assert remote.received == []


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_file_that_is_not_valid_is_reported(remote: Server, store: Callable[..., Path], content: str):
    store(remote.url, "token-0").write_text(content)
    with pytest.raises(StoredTokenError, match="mlflow-serverless login again"):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)


def test_a_login_in_the_meantime_replaces_a_refused_token(remote: Server, store: Callable[..., Path]):
    store(remote.url, "revoked")
    auth = ServerlessAuth()
    assert requests.get(f"{remote.url}/api/x", auth=auth, timeout=60).status_code == 401
    assert _tokens(remote) == ["Bearer revoked"]
    remote.refusing = lambda: store(remote.url, "token-0")
    assert requests.get(f"{remote.url}/api/x", auth=auth, timeout=60).status_code == 200
    assert _tokens(remote)[1:] == ["Bearer revoked", "Bearer token-0"]


def test_a_stored_token_takes_precedence_over_an_identity(remote: Server, store: Callable[..., Path], monkeypatch):
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "jwt")
    store(remote.url, "token-0")
    assert requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60).status_code == 200
    assert remote.exchanged == []


def test_the_sources_of_identity_tokens(remote: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def get() -> str:
        assert requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60).status_code == 200
        return remote.exchanged[-1]

    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{remote.url}/identity?version=1")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of the job")
    assert get() == f"jwt for {remote.url}"
    monkeypatch.setenv("MLFLOW_OIDC_AUDIENCE", "https://other")
    assert get() == "jwt for https://other"
    file = tmp_path / "token"
    file.write_text("of the pod\n")
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN_FILE", str(file))
    assert get() == "of the pod"
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "of the variable")
    assert get() == "of the variable"


def test_a_token_is_replaced_before_it_expires(remote: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The clock of the client moves. The server would accept only the latest token."""
    file = tmp_path / "token"
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN_FILE", str(file))
    auth, begin = ServerlessAuth(), time.time()
    # With 3,600 s, a token is replaced after 3,300 s; with 60 s, after 48 s.
    for expires_in, replaced_after in ((3_600, 3_300), (60, 48)):
        remote.expires_in = expires_in
        monkeypatch.setattr(time, "time", lambda now=begin: now)
        file.write_text(f"first of {expires_in}")
        TokenExchange.discard(auth._exchange(remote.url), remote.latest)
        for after, number in ((0, 1), (replaced_after - 1, 1), (replaced_after + 1, 2), (2 * replaced_after, 2)):
            monkeypatch.setattr(time, "time", lambda now=begin + after: now)
            assert requests.get(f"{remote.url}/api/x", auth=auth, timeout=60).status_code == 200
            # The file of a pod is read for every exchange, because its content is replaced.
            file.write_text(f"second of {expires_in}")
            assert len([jwt for jwt in remote.exchanged if jwt.endswith(f"of {expires_in}")]) == number, (expires_in, after)
        assert remote.exchanged[-2:] == [f"first of {expires_in}", f"second of {expires_in}"]


def test_a_failure_to_replace_a_token_is_ignored_until_it_expires(remote: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "jwt")
    auth, begin = ServerlessAuth(), time.time()

    def status(after: int) -> int:
        monkeypatch.setattr(time, "time", lambda: begin + after)
        return requests.get(f"{remote.url}/api/x", auth=auth, timeout=60).status_code

    assert status(0) == 200
    remote.failure = _json(400, {"error": "invalid_grant", "error_description": "The token expired."})
    assert (status(3_400), status(3_500)) == (200, 200)
    with pytest.raises(IdentityError, match=r"refused the identity token from the variable MLFLOW_OIDC_TOKEN: The token expired\."):
        status(3_601)
    remote.failure = None
    assert status(3_602) == 200


def test_a_token_that_is_refused_is_replaced_once(remote: Server, monkeypatch: pytest.MonkeyPatch):
    """Operators can revoke a token, and clocks differ."""
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "jwt")
    auth = ServerlessAuth()
    assert requests.get(f"{remote.url}/api/x", auth=auth, timeout=60).status_code == 200
    remote.exchanged.append("revokes the token")
    body = io.BytesIO(b"before the content")
    body.seek(7)
    response = requests.put(f"{remote.url}/api/2.0/mlflow-artifacts/artifacts/a.txt", body, auth=auth, timeout=60)
    assert (response.status_code, response.content) == (200, b"the content")
    assert remote.received[-1].values("content-type") == ["application/octet-stream"]
    assert _tokens(remote) == ["Bearer token-1", "Bearer token-1", "Bearer token-3"]


def test_many_threads_exchange_once(remote: Server):
    fetched = []

    def fetch(_: str) -> str:
        fetched.append(threading.get_ident())
        return "jwt"

    exchange = TokenExchange(remote.url, Identity("the test", True, fetch))
    with ThreadPoolExecutor(30) as pool:
        assert set(pool.map(lambda _: exchange.token(), range(90))) == {"token-1"}
    assert len(fetched) == 1


def test_no_token_follows_a_redirect(remote: Server, store: Callable[..., Path]):
    store(remote.url, "token-0")
    for host in ("127.0.0.1", "localhost"):
        with ExitStack() as stops:
            stored: list[Received] = []

            def answer(request: Received, stored: list[Received] = stored) -> Answer:
                stored.append(request)
                return 200, [], b""

            remote.location = stops.enter_context(serving(answer, host=host)) + "/bucket"
            assert requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60).status_code == 200
            [request] = stored
            assert request.values("authorization") == []


def test_a_job_with_aws_credentials_signs_if_nothing_is_exchanged(remote: Server, aws: None, monkeypatch: pytest.MonkeyPatch):
    """API Gateway refuses unsigned requests. A server without rules does not support the grant."""
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{remote.url}/identity?version=1")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of the job")
    for failure in (_json(403, {"message": "Missing Authentication Token"}), (404, [], b"<html>"), _json(400, {"error": "unsupported_grant_type"})):
        remote.failure = failure
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)
        assert _tokens(remote)[-1].startswith("AWS4-HMAC-SHA256 ")
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "jwt")
    with pytest.raises(NotSupportedError):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)


def test_a_refused_identity_is_an_error_even_with_aws_credentials(remote: Server, aws: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{remote.url}/identity?version=1")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of the job")
    remote.failure = _json(400, {"error": "invalid_grant", "error_description": "No rule matches."})
    with pytest.raises(IdentityError, match="GitHub Actions: No rule matches"):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)
    assert remote.received == []


def test_an_exchange_is_repeated_while_the_server_is_busy(remote: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_OIDC_TOKEN", "jwt")
    answers = iter([_json(503, {"error": "temporarily_unavailable"}), (500, [], b""), (429, [], b""), None])
    original = remote._exchange

    def exchange(request: Received) -> Answer:
        remote.failure = next(answers)
        return original(request)

    monkeypatch.setattr(remote, "_exchange", exchange)
    assert requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60).status_code == 200
    assert next(answers, "none is left") == "none is left"


def test_a_server_that_fails_does_not_lead_to_signatures(remote: Server, aws: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mlflow_serverless_auth.exchange._RETRIES", 0)
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{remote.url}/identity?version=1")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of the job")
    remote.failure = (500, [], b"")
    with pytest.raises(IdentityError, match="status 500"):
        requests.get(f"{remote.url}/api/x", auth=ServerlessAuth(), timeout=60)
    assert remote.received == []


@pytest.mark.parametrize(
    ("url", "its_origin", "its_server"),
    [
        ("https://ML.example:443/api/2.0/mlflow/runs/get", "https://ml.example", "https://ml.example"),
        ("http://ml.example:80/v1/traces", "http://ml.example", "http://ml.example"),
        ("https://ml.example:8443/team/api/2.0/x/api/y?z=/api/", "https://ml.example:8443", "https://ml.example:8443/team"),
        ("http://[::1]:5000/graphql", "http://[::1]:5000", "http://[::1]:5000"),
        ("https://ml.example/get-artifact", "https://ml.example", "https://ml.example"),
    ],
)
def test_origins_and_servers_of_urls(url: str, its_origin: str, its_server: str):
    assert (origin(url), server(url)) == (its_origin, its_server)
