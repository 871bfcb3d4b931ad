"""Creates an administrator through the stack's API for signed requests, with the credentials of the
caller. A principal that is not mapped to a user has full access there.
"""

import getpass
import json
import sys
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

_API = "/api/2.0/mlflow/users"
_SECONDS = 60
#: Responses of a gateway or a function that has just been created, and pauses before the next try.
_TEMPORARY, _PAUSES = {429, 500, 502, 503, 504}, (1, 2, 4, 8)


class Refused(Exception):
    """The administrator was not created. The message says why, and what to do."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def said(self) -> str:
        return f"{self.status} {self.body.get('message') or self.body.get('Message') or ''}".strip()


class Api:
    """The API for signed requests."""

    def __init__(self, uri: str, region: str):
        parts = urlsplit(uri)
        # Requests contain the password and, with temporary credentials, a session token.
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
            raise Refused(f"{uri} does not begin with https://.")
        self._uri, self._region = uri.rstrip("/"), region
        self._credentials = botocore.session.Session().get_credentials()

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        answer = self._send(method, path, body)
        # A creation is not repeated, because the first attempt may have succeeded.
        for pause in _PAUSES if method == "GET" else ():
            if answer.status not in _TEMPORARY:
                break
            time.sleep(pause)
            answer = self._send(method, path, body)
        return answer

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        request = AWSRequest(method, self._uri + path, headers=headers, data=json.dumps(body).encode() if body is not None else b"")
        SigV4Auth(self._credentials.get_frozen_credentials(), "execute-api", self._region).add_auth(request)
        sent = URLLib3Session(timeout=_SECONDS, proxies=get_environ_proxies(self._uri)).send(request.prepare())
        try:
            said = json.loads(sent.content)
        except ValueError:
            said = {"message": sent.content.decode(errors="replace")[:300]}
        return Answer(sent.status_code, said if isinstance(said, dict) else {})


def make_administrator(api: Api, name: str) -> str:
    """Makes this user an administrator, after creating the user with a password if necessary.
    Returns what was done.
    """
    found = api.call("GET", f"{_API}/get?username={quote(name, safe='')}")
    if found.status == 200:
        if found.body.get("user", {}).get("is_admin"):
            return f"{name} is already an administrator. The password was not changed."
        _require(api.call("PATCH", f"{_API}/update-admin", {"username": name, "is_admin": True}))
        return f"{name} existed already, and is an administrator now. The password was not changed."
    if found.status != 404:
        _require(found)
    _require(api.call("POST", f"{_API}/create", {"username": name, "password": read_password(name)}))
    _require(api.call("PATCH", f"{_API}/update-admin", {"username": name, "is_admin": True}))
    return f"Created the administrator {name}."


def read_password(name: str) -> str:
    """Prompts for a password twice. Without a terminal, reads the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}, at least 12 characters: ")
    if getpass.getpass("Repeat the password: ") != password:
        raise Refused("the two passwords differ.")
    return password


def _require(answer: Answer) -> None:
    if answer.status == 200:
        return
    advice = ""
    if answer.status == 403 and "error_code" not in answer.body:
        advice = " API Gateway refused the request: your AWS user or role needs execute-api:Invoke on this API."
    elif answer.status == 403:
        advice = " Your AWS user or role acts as a user who is not an administrator (SignedUser, or a mapping): use other credentials."
    raise Refused(f"the server returned {answer.said}.{advice}")
