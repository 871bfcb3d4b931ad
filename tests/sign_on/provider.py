"""An OpenID provider on this machine, which records the requests for tokens and can be stopped."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import oidc_provider_mock
import requests
from werkzeug.serving import make_server

_TIMEOUT_SECONDS = 120


class Provider:
    """The provider. Whoever posts a subject to its authorization endpoint signs in as that person."""

    def __init__(self, **options: Any):
        self._app = oidc_provider_mock.app(**options)
        self._port = 0
        #: Forms of the requests to the token endpoint.
        self.token_requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://localhost:{self._port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the provider, on the same port as before if it has run before."""
        server = make_server("localhost", self._port, self._answer, threaded=True)
        self._port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            self.token_requests.append({name: values[0] for name, values in parse_qs(body.decode()).items()})
        return self._app(environ, start_response)

    def set_person(self, subject: str, **claims: Any) -> None:
        requests.put(f"{self.url}/users/{subject}", json=claims, timeout=_TIMEOUT_SECONDS).raise_for_status()

    def revoke(self, subject: str) -> None:
        """Revokes all tokens of a person, as if the person had been removed."""
        requests.post(f"{self.url}/users/{subject}/revoke-tokens", timeout=_TIMEOUT_SECONDS).raise_for_status()

    def register(self, redirect_uri: str) -> tuple[str, str]:
        """Registers a client. Returns its id and its secret."""
        sent = {"redirect_uris": [redirect_uri], "token_endpoint_auth_method": "client_secret_basic"}
        made = requests.post(f"{self.url}/oauth2/clients", json=sent, timeout=_TIMEOUT_SECONDS)
        made.raise_for_status()
        return made.json()["client_id"], made.json()["client_secret"]

    def sign_in(self, location: str, subject: str) -> str:
        """Signs in, and returns the URL that the provider redirects the browser to."""
        return self._decide(location, {"sub": subject})

    def deny(self, location: str) -> str:
        """Refuses to sign in, and returns the URL that the provider redirects the browser to. This
        provider omits the state, which real ones return.
        """
        state = parse_qs(urlsplit(location).query)["state"][0]
        return f"{self._decide(location, {'action': 'deny'})}&{urlencode({'state': state})}"

    def _decide(self, location: str, form: dict[str, str]) -> str:
        answer = requests.post(location, data=form, allow_redirects=False, timeout=_TIMEOUT_SECONDS)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def refreshes(self) -> int:
        """Returns the number of requests that presented a refresh token."""
        return sum(form.get("grant_type") == "refresh_token" for form in self.token_requests)
