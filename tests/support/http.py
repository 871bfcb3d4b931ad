"""Requests and answers as plain data, without any of a client's opinions about them."""

import http.client
import json
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

#: What clients read of an answer's headers, besides what their HTTP library uses up by itself; tests/README.md says
#: who reads which.
HEADERS_READ = ("Content-Type", "Content-Disposition", "ETag", "Location", "Retry-After")

_TIMEOUT_SECONDS = 120
_CONNECTIONS = 16


@dataclass(frozen=True)
class Request:
    """One HTTP request. `body` is sent as it is; `query` may repeat a key by giving a list."""

    method: str
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, method: str, path: str, value: Any, headers: dict[str, str] | None = None) -> "Request":
        """A JSON request. NaN and Infinity are written bare, as Python clients write them."""
        return cls(method, path, {}, json.dumps(value).encode(), headers or {"Content-Type": "application/json"})


@dataclass(frozen=True)
class Answer:
    """One HTTP answer: `body` is parsed JSON if it is JSON, otherwise text; `headers` are those of HEADERS_READ."""

    status: int
    kind: str
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Side:
    """A server by its base URL, with connections kept alive per thread."""

    def __init__(self, name: str, url: str):
        self.name = name
        self.url = url
        self._local = threading.local()

    def send(self, request: Request) -> Answer:
        """Send a request, following no redirect and believing no environment variable."""
        answer = self._session().request(
            request.method,
            self.url + request.path,
            params=request.query,
            data=request.body,
            headers=request.headers,
            timeout=_TIMEOUT_SECONDS,
            allow_redirects=False,
        )
        kind = answer.headers.get("Content-Type", "").partition(";")[0].partition("/")[2] or "none"
        headers = {name: answer.headers[name] for name in HEADERS_READ if name in answer.headers}
        if "ETag" in headers:
            # Which tag is the server's choice.
            headers["ETag"] = "a tag"
        if kind != "json":
            return Answer(answer.status_code, kind, answer.text, headers)
        try:
            return Answer(answer.status_code, kind, json.loads(answer.content), headers)
        except ValueError:
            return Answer(answer.status_code, "broken json", answer.text, headers)

    def _session(self) -> requests.Session:
        if not hasattr(self._local, "session"):
            session = requests.Session()
            session.trust_env = False
            session.mount("http://", HTTPAdapter(pool_maxsize=_CONNECTIONS))
            self._local.session = session
        return self._local.session


def send_as_it_is(url: str, method: str, target: str, body: bytes = b"") -> tuple[int, dict[str, str], str]:
    """A request to the server of this URL whose target no library has tidied: status, headers and text of the answer, no redirect followed."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(method, target, skip_accept_encoding=True)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found
