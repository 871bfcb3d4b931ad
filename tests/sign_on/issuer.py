"""An issuer of identity tokens for machines, with OpenID Connect discovery, as GitHub, GitLab and
clusters are.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.http_server import Answer, Received, serving

_KEY_ID = "key-1"


class Issuer:
    """An issuer with one RSA key. It also responds to jobs like GitHub's endpoint for identity
    tokens.
    """

    #: Authorization of a job at the endpoint for identity tokens.
    JOB = "of the job"

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self.url = ""
        #: Claims of the tokens that jobs get.
        self.claims: dict[str, Any] = {}
        #: Audiences for which jobs have requested a token.
        self.requested: list[str] = []
        #: Paths of the requests of servers.
        self.fetched: list[str] = []
        self.is_down = False

    @contextmanager
    def running(self) -> Iterator["Issuer"]:
        with serving(self._answer) as self.url:
            yield self

    def token(self, audience: str | list[str], header: dict[str, Any] | None = None, **changes: Any) -> str:
        """Returns a signed JWT. `changes` replace claims, or remove them if they are `None`."""
        return self._signed({"alg": "RS256", "typ": "JWT", "kid": _KEY_ID} | (header or {}), self._payload(audience, changes))

    def unsigned(self, audience: str) -> str:
        """Returns a JWT with the algorithm `none`."""
        return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(self._payload(audience, {}))}."

    def keys(self) -> dict[str, Any]:
        """Returns the JWK set."""
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_base64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, "n": modulus, "e": exponent}]}

    def _payload(self, audience: str | list[str], changes: dict[str, Any]) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": audience, "iat": now, "nbf": now, "exp": now + 300, "sub": "job"}
        return {name: value for name, value in (claims | self.claims | changes).items() if value is not None}

    def _signed(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        signed = f"{_encoded(header)}.{_encoded(claims)}"
        return f"{signed}.{_base64(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _answer(self, request: Received) -> Answer:
        target = urlsplit(request.target)
        if target.path == "/job":
            if request.values("authorization") != [f"Bearer {self.JOB}"]:
                return 401, [], b""
            [audience] = parse_qs(target.query)["audience"]
            self.requested.append(audience)
            return _json({"value": self.token(audience)})
        self.fetched.append(target.path)
        if self.is_down:
            return 503, [], b""
        match target.path:
            case "/.well-known/openid-configuration":
                return _json({"issuer": self.url, "jwks_uri": f"{self.url}/keys", "id_token_signing_alg_values_supported": ["RS256"]})
            case "/keys":
                return _json(self.keys())
        return 404, [], b""


def _json(content: dict[str, Any]) -> Answer:
    return 200, [("Content-Type", "application/json")], json.dumps(content).encode()


def _encoded(content: dict[str, Any]) -> str:
    return _base64(json.dumps(content).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
