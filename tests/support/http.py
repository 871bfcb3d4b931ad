"""HTTP requests and responses as plain data, unaffected by the behavior of a client library."""

import http.client
import json
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

#: Response headers that clients read, besides those that their HTTP library handles by itself.
#: tests/README.md lists which client reads which header.
HEADERS_READ = ("Content-Type", "Content-Disposition", "ETag", "Location", "Retry-After")

_TIMEOUT_SECONDS = 120
_CONNECTIONS = 16


@dataclass(frozen=True)
class Request:
    """An HTTP request. `body` is sent unchanged. A key of `query` is repeated if its value is a
    list.
    """

    method: str
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, method: str, path: str, value: Any, headers: dict[str, str] | None = None) -> "Request":
        """Creates a JSON request. NaN and Infinity are written without quotes, as Python clients
        write them.
        """
        return cls(method, path, {}, json.dumps(value).encode(), headers or {"Content-Type": "application/json"})


@dataclass(frozen=True)
class Answer:
    """An HTTP response. `body` is parsed if it is JSON, and text otherwise. `headers` contains the
    headers in HEADERS_READ.
    """

    status: int
    kind: str
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Side:
    """A server by its base URL, with one session of persistent connections per thread."""

    def __init__(self, name: str, url: str):
        self.name = name
        self.url = url
        self._local = threading.local()

    def send(self, request: Request) -> Answer:
        """Sends a request, without following redirects and without reading proxies or credentials
        from the environment.
        """
        answer = self._session().request(
            request.method,
            self.url + request.path,
            params=request.query,
            data=request.body,
            headers=request.headers,
            timeout=_TIMEOUT_SECONDS,
            allow_redirects=False,
        )
        if answer.status_code == 500:
            # After an exception, Uvicorn closes the connection without announcing it, possibly while
            # the next request is on its way.
            self._session().close()
        kind = answer.headers.get("Content-Type", "").partition(";")[0].partition("/")[2] or "none"
        headers = {name: answer.headers[name] for name in HEADERS_READ if name in answer.headers}
        if "ETag" in headers:
            # Servers may choose any tag, so only its presence is compared.
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
    """Sends a request to the server of this URL with exactly this target, which a library would
    normalize. Returns status, headers and text of the response. Does not follow redirects.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(method, target, skip_accept_encoding=True)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found
