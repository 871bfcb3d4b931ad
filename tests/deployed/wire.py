"""Forwards the functions' requests to DynamoDB, S3, Lambda and Parameter Store to the emulator, and
records them.

Adds a header that makes the emulator treat a request as received over TLS, because the bucket's
policy refuses any other.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.http_server import Answer, Received

_TIMEOUT_SECONDS = 300
_HOP_BY_HOP = {"connection", "content-length", "keep-alive", "transfer-encoding"}
#: Parts of a transaction, with the operation whose permission each of them requires.
_PARTS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem", "Get": "GetItem"}
_INVOCATION = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_KEY = re.compile(r"Credential=([A-Z0-9]+)/")


@dataclass(frozen=True)
class Call:
    """A recorded request: the caller, the IAM action, and the end of the resource's ARN."""

    caller: str
    action: str
    resource: str
    is_denied: bool = False


#: A function that may replace the emulator's response to a request.
Interference = Callable[[Call, Answer], Answer]


@dataclass
class Wire:
    """Forwards requests to the emulator at `url`, which is set after it has started."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    _interference: Interference | None = None
    _names: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def denied(self) -> list[Call]:
        return [call for call in self.calls if call.is_denied]

    @contextmanager
    def interfering(self, interference: Interference) -> Iterator[None]:
        """Passes each request and the emulator's response to a function, which returns the response
        that is sent. It is called before the response is sent.
        """
        self._interference = interference
        try:
            yield
        finally:
            self._interference = None

    def dynamodb(self, request: Received) -> Answer:
        return self._pass_on(request, _of_dynamodb)

    def s3(self, request: Received) -> Answer:
        return self._pass_on(request, _of_s3)

    def functions(self, request: Received) -> Answer:
        return self._pass_on(request, _of_lambda)

    def parameters(self, request: Received) -> Answer:
        return self._pass_on(request, _of_parameter_store)

    def forward(self, request: Received) -> Answer:
        """Forwards a request to any service, without recording it."""
        return _send(self.url, request)

    def _pass_on(self, request: Received, told: Callable[[Received], Iterable[tuple[str, str]]]) -> Answer:
        caller = self._caller(request)
        status, headers, body = _send(self.url, request)
        is_denied = status == 403 or (status == 400 and b"AccessDenied" in body)
        calls = [Call(caller, action, resource, is_denied) for action, resource in told(request)]
        with self._lock:
            self.calls += calls
        answer: Answer = status, headers, body
        if interference := self._interference:
            for call in calls:
                answer = interference(call, answer)
        return answer

    def _caller(self, request: Received) -> str:
        """Returns the function whose key has signed the request. The function's process still runs,
        because it is waiting for the response.
        """
        text = unquote(" ".join(request.values("authorization")) or request.target.replace("X-Amz-Credential=", "Credential="))
        found = _KEY.search(text)
        key = found[1] if found else ""
        with self._lock:
            if key not in self._names:
                self._names |= _functions()
            return self._names.get(key, key or "nobody")


def processes(function: str, s3: str) -> list[int]:
    """Returns the processes of a function, given the URL at which it uses S3. Another emulator may run
    a function of the same name.
    """
    return [
        process
        for process, variables in _running()
        if (variables["AWS_LAMBDA_FUNCTION_NAME"], variables.get("AWS_ENDPOINT_URL_S3")) == (function, s3)
    ]


def _functions() -> dict[str, str]:
    """Returns the running functions by their access keys."""
    return {
        variables["AWS_ACCESS_KEY_ID"]: variables["AWS_LAMBDA_FUNCTION_NAME"]
        for _, variables in _running()
        if "AWS_ACCESS_KEY_ID" in variables
    }


def _running() -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the processes of all functions, with their environment variables."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = dict(pair.split("=", 1) for pair in path.read_bytes().decode(errors="replace").split("\0") if "=" in pair)
        except OSError:
            continue
        if "AWS_LAMBDA_FUNCTION_NAME" in variables:
            yield int(path.parent.name), variables


def _send(url: str, request: Received) -> Answer:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)
    try:
        # Keeps the host, because it is signed.
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers:
            if name.lower() not in _HOP_BY_HOP:
                connection.putheader(name, value)
        connection.putheader("X-Forwarded-Proto", "https")
        connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        response = connection.getresponse()
        dropped = _HOP_BY_HOP - ({"content-length"} if request.method == "HEAD" else set())
        headers = [(name, value) for name, value in response.getheaders() if name.lower() not in dropped]
        return response.status, headers, response.read()
    finally:
        connection.close()


def _of_dynamodb(request: Received) -> list[tuple[str, str]]:
    action = request.values("x-amz-target")[0].partition(".")[2]
    body = json.loads(request.body)
    if action in ("TransactWriteItems", "TransactGetItems"):
        parts = [next(iter(item.items())) for item in body["TransactItems"]]
        return [(f"dynamodb:{_PARTS[kind]}", f"table/{part['TableName']}") for kind, part in parts]
    if action in ("BatchGetItem", "BatchWriteItem"):
        return [(f"dynamodb:{action}", f"table/{table}") for table in body["RequestItems"]]
    index = f"/index/{body['IndexName']}" if "IndexName" in body else ""
    return [(f"dynamodb:{action}", f"table/{body.get('TableName', '')}{index}")]


def _of_lambda(request: Received) -> list[tuple[str, str]]:
    found = _INVOCATION.fullmatch(unquote(request.target))
    return [("lambda:InvokeFunction", f"function:{found[1]}")] if found else [(f"lambda:{request.method}", request.target)]


def _of_parameter_store(request: Received) -> list[tuple[str, str]]:
    action = request.values("x-amz-target")[0].partition(".")[2]
    return [(f"ssm:{action}", f"parameter{json.loads(request.body)['Name']}")]


def _of_s3(request: Received) -> list[tuple[str, str]]:
    path, _, text = request.target.partition("?")
    bucket, _, key = unquote(path).lstrip("/").partition("/")
    query = parse_qs(text, keep_blank_values=True)
    if not key:
        return [("s3:ListBucket" if request.method in ("GET", "HEAD") else f"s3:{request.method}", bucket)]
    in_parts = "uploadId" in query
    actions = {
        "GET": "s3:ListMultipartUploadParts" if in_parts else "s3:GetObject",
        "HEAD": "s3:GetObject",
        "PUT": "s3:PutObject",
        "POST": "s3:PutObject",
        "DELETE": "s3:AbortMultipartUpload" if in_parts else "s3:DeleteObject",
    }
    return [(actions.get(request.method, f"s3:{request.method}"), f"{bucket}/{key}")]
