"""Verifies AWS signatures (version 4) strictly, from the bytes that were received.

Implemented from the specification only ("Create a signed AWS API request" in the IAM user guide).
It does not share code with any signer, so that an error in a signer is not repeated here.
test_verifier.py checks it with AWS's published examples.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import quote, unquote_to_bytes

from tests.support.http_server import Received

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<credential>[^, ]+), *SignedHeaders=(?P<headers>[^, ]+), *"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_TIMESTAMP = "%Y%m%dT%H%M%SZ"
_MOST_SKEW = timedelta(minutes=5)

class Refused(Exception):
    """The signature is invalid. The message contains the reason."""


@dataclass(frozen=True)
class Verifier:
    """The credentials of one caller, and the region and service that signatures must be for.
    Temporary credentials have a token.
    """

    access_key: str
    secret_key: str
    region: str
    service: str = "execute-api"
    token: str | None = None

    def verify(self, request: Received, now: datetime | None = None) -> None:
        """Raises Refused unless the request has a valid signature that was created at about this
        time.
        """
        found = _AUTHORIZATION.fullmatch(_only(request, "authorization"))
        if not found:
            raise Refused("Authorization does not have the form of a signature")
        timestamp = _only(request, "x-amz-date")
        self._check_moment(timestamp, now or datetime.now(timezone.utc))
        scope = f"{timestamp[:8]}/{self.region}/{self.service}/aws4_request"
        if found["credential"] != f"{self.access_key}/{scope}":
            raise Refused(f"the credential {found['credential']} is not that of {self.access_key} for {scope}")
        if request.values("x-amz-security-token") != ([self.token] if self.token else []):
            raise Refused("the security token is not that of the credentials")
        _check_header_list(request, found["headers"])
        _check_declared_hash(request)
        canonical = canonical_request(request, found["headers"])
        text = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        if not hmac.compare_digest(self._signature(scope, text), found["signature"]):
            raise Refused(f"the signature is not that of the canonical request\n{canonical}")

    def _check_moment(self, timestamp: str, now: datetime) -> None:
        try:
            moment = datetime.strptime(timestamp, _TIMESTAMP).replace(tzinfo=timezone.utc)
        except ValueError:
            raise Refused(f"x-amz-date is {timestamp}") from None
        if abs(now - moment) > _MOST_SKEW:
            raise Refused(f"signed at {moment}, received at {now}")

    def _signature(self, scope: str, text: str) -> str:
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode(), "sha256")
        return key.hex()


def canonical_request(request: Received, signed_headers: str) -> str:
    """Returns the text that the signer must have hashed. It also shows in errors why two sides
    disagree.
    """
    path, _, query = request.target.partition("?")
    names = signed_headers.split(";")
    lines = [f"{name}:{','.join(' '.join(value.split()) for value in request.values(name))}" for name in names]
    payload = hashlib.sha256(request.body).hexdigest()
    return "\n".join([request.method, _path(path), _query(query), *lines, "", signed_headers, payload])


def _path(path: str) -> str:
    """Resolves dot segments and empty segments, and then encodes each byte, so that encoded
    characters are encoded twice.
    """
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    closing = "/" if kept and segments[-1] in ("", ".", "..") else ""
    return "/" + "/".join(quote(segment, safe="-_.~") for segment in kept) + closing


def _query(query: str) -> str:
    """Decodes names and values like a form, encodes each byte, and sorts by name and value. No
    parameter is omitted.
    """
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    encoded = sorted((_again(name), _again(value)) for name, _, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def _again(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _only(request: Received, name: str) -> str:
    values = request.values(name)
    if len(values) != 1:
        raise Refused(f"there are {len(values)} headers {name}")
    return values[0]


def _check_header_list(request: Received, listed: str) -> None:
    names = listed.split(";")
    if names != sorted(set(names)) or listed != listed.lower():
        raise Refused(f"the list of signed headers is not sorted, or repeats one: {listed}")
    received = {name.lower() for name, _ in request.headers}
    if missing := set(names) - received:
        raise Refused(f"signed headers that did not arrive: {missing}")
    needed = {"host"} | {name for name in received if name.startswith("x-amz-")}
    if unsigned := needed - set(names):
        raise Refused(f"headers that have to be signed: {unsigned}")


def _check_declared_hash(request: Received) -> None:
    """Checks the hash of the body, if the client declares one. This service does not support
    unsigned bodies.
    """
    for declared in request.values("x-amz-content-sha256"):
        if declared != hashlib.sha256(request.body).hexdigest():
            raise Refused(f"the body is not that of the hash {declared}")
