"""Authentication of requests that are sent with the package `requests`.

The first of these that exists is used: the token that `mlflow-serverless login` has stored for the server, the
identity token that the environment issues to CI jobs and pods, or AWS credentials, which sign the request.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mlflow_serverless_auth import identity, uploads
from mlflow_serverless_auth.exchange import NotSupportedError, TokenExchange
from mlflow_serverless_auth.signer import SigV4, before_redirect
from mlflow_serverless_auth.stored_tokens import StoredTokens

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

_DEFAULT_PORTS = {"http": 80, "https": 443}


class ServerlessAuth:
    """Authenticates requests to a server, as an `auth` of `requests`. Thread-safe."""

    def __init__(self) -> None:
        self._signer = SigV4()
        self._stored = StoredTokens()
        self._exchanges: dict[str, TokenExchange | None] = {}
        self._lock = threading.Lock()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Adds credentials to a request.

        Raises:
            StoredTokenError: The file with tokens cannot be used.
            IdentityError: The server refuses the environment's identity token, or none was issued.
            SigningError: There is no token, and the request cannot be signed.
        """
        token = self._token(request.url or "")
        if token is None:
            return self._signer(request)
        uploads.prepare(request)
        request.headers["Authorization"] = f"Bearer {token}"
        # In this order, because the repeated request may be redirected.
        request.register_hook("response", self._repeat_once)  # type: ignore[no-untyped-call]
        request.register_hook("response", before_redirect)  # type: ignore[no-untyped-call]
        return request

    def _token(self, url: str) -> str | None:
        """Returns a token for the server of a URL, or `None` if the request has to be signed."""
        stored = self._stored.find(origin(url))
        if stored is not None:
            return stored
        exchange = self._exchange(server(url))
        if exchange is None:
            return None
        try:
            return exchange.token()
        except NotSupportedError:
            source = identity.of_environment()
            if source is None or source.is_explicit:
                raise
            # Jobs of GitHub Actions that have AWS credentials also have an identity token.
            with self._lock:
                self._exchanges[server(url)] = None
            return None

    def _exchange(self, of_server: str) -> TokenExchange | None:
        with self._lock:
            if of_server not in self._exchanges:
                source = identity.of_environment()
                self._exchanges[of_server] = TokenExchange(of_server, source) if source else None
            return self._exchanges[of_server]

    def _repeat_once(self, response: Response, **options: Any) -> Response:
        """Repeats a request whose token the server has refused, if there is another token by now."""
        request, sent = response.request, response.request.headers.get("Authorization", "")
        if response.status_code != 401 or not sent.startswith("Bearer "):
            return response
        refused = sent.removeprefix("Bearer ")
        exchange = self._exchanges.get(server(request.url or ""))
        if exchange is not None:
            exchange.discard(refused)
        token = self._token(request.url or "")
        if token is None or token == refused or not uploads.rewind(request):
            return response
        # Reads the response to its end, so that the connection can be used again.
        _ = response.content
        response.close()
        # Changed in place, because `requests` copies the headers of this request if it is redirected.
        request.headers["Authorization"] = f"Bearer {token}"
        repeated = response.connection.send(request, **options)
        repeated.history.append(response)
        return repeated


def origin(url: str) -> str:
    """Returns scheme, host and port of a URL, in lower case and without the default port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def server(url: str) -> str:
    """Returns the URL of the server, with the path below which a reverse proxy serves it, from the URL of a request."""
    path = urlsplit(url).path
    ends = [path.find(prefix) for prefix in ("/api/", "/ajax-api/", "/v1/", "/graphql") if prefix in path]
    return origin(url) + path[: min(ends, default=0)].rstrip("/")
