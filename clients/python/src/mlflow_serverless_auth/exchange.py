"""Exchange of an identity token for a token of the server (RFC 8693)."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from mlflow_serverless_auth.identity import Identity, IdentityError

_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT = "urn:ietf:params:oauth:token-type:jwt"
_TIMEOUT_SECONDS = 30
#: A token is replaced this long before it expires, but not before four fifths of its lifetime, so
#: that a request with all its retries ends in time.
_MARGIN_SECONDS = 300
#: Pause after an exchange has failed, while the earlier token is still valid.
_PAUSE_SECONDS = 15
#: The exchange is repeated after these statuses, with exponential backoff.
_RETRIES = Retry(5, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504), allowed_methods=None, raise_on_status=False)


class NotSupportedError(Exception):
    """The server does not exchange identity tokens."""


@dataclass
class _Issued:
    token: str
    renew_at: float
    expires: float


class TokenExchange:
    """Tokens of one server, which replace each other before they expire. Thread-safe."""

    def __init__(self, server: str, identity: Identity) -> None:
        self._server = server
        self._identity = identity
        self._lock = threading.Lock()
        self._issued: _Issued | None = None

    def token(self) -> str:
        """Returns a valid token.

        Raises:
            NotSupportedError: The server does not exchange identity tokens.
            IdentityError: The server refuses the identity token, or none was issued.
        """
        with self._lock:
            issued, now = self._issued, time.time()
            if issued is None or now >= issued.expires:
                issued = self._exchange()
            elif now >= issued.renew_at:
                try:
                    issued = self._exchange()
                except (IdentityError, NotSupportedError, requests.RequestException):
                    issued.renew_at = now + _PAUSE_SECONDS
            self._issued = issued
            return issued.token

    def discard(self, token: str) -> None:
        """Discards a token that the server has refused."""
        with self._lock:
            if self._issued is not None and self._issued.token == token:
                self._issued = None

    def _exchange(self) -> _Issued:
        form = {"grant_type": _GRANT, "subject_token": self._identity.fetch(self._server), "subject_token_type": _JWT}
        now = time.time()
        with requests.Session() as session:
            session.mount(self._server, HTTPAdapter(max_retries=_RETRIES))
            response = session.post(
                f"{self._server}/oauth/token", form, timeout=_TIMEOUT_SECONDS, verify=_verify(), allow_redirects=False
            )
        content = _content(response)
        if response.status_code == 200 and "access_token" in content:
            lifetime = float(content.get("expires_in", 0))
            margin = min(_MARGIN_SECONDS, lifetime / 5)
            return _Issued(content["access_token"], now + lifetime - margin, now + lifetime)
        error = content.get("error")
        if response.status_code >= 500 and not isinstance(error, str):
            raise IdentityError(f"{self._server} failed to exchange the identity token (status {response.status_code}).")
        # API Gateway and servers without users respond to this path without an OAuth error.
        if not isinstance(error, str) or error == "unsupported_grant_type":
            raise NotSupportedError(f"{self._server} does not exchange identity tokens (status {response.status_code}).")
        reason = content.get("error_description") or error
        raise IdentityError(f"{self._server} refused the identity token from {self._identity.source}: {reason}")


def _content(response: requests.Response) -> dict:
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _verify() -> bool | str:
    """Returns how MLflow verifies the server's certificate."""
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        return False
    return os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or True
