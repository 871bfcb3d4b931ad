"""API Gateway in front of the emulator's functions: enforces the properties of an HTTP API in the
template.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.clients.gateway import strict
from tests.clients.verifier import Verifier
from tests.support.gateway import Gateway, Limits
from tests.support.http_server import Answer, Backend, Received, serving
from tests.support.runtime_api import LONGEST_BYTES, EventTooLong, FunctionFailed

from .emulator import ACCOUNT, REGION, Emulator
from .processed import HttpApi

#: Timeout of a call. It is 30 s in AWS. Here the functions are not optimized and share the machine
#: with all other tests.
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Caller:
    """An IAM user with access keys."""

    name: str
    key: str
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_DEFAULT_REGION": REGION}

    @property
    def authorizer(self) -> dict[str, Any]:
        """Returns the identity that functions receive for a signed request."""
        arn = f"arn:aws:iam::{ACCOUNT}:user/{self.name}"
        said = {"accessKey": self.key, "accountId": ACCOUNT, "callerId": "AIDATEST", "userArn": arn, "userId": "AIDATEST"}
        return {"iam": said | {"cognitoIdentity": None, "principalOrgId": None}}


@dataclass(frozen=True)
class Deployed:
    """A function of the stack, for calls from API Gateway. The function's policy has to allow the
    API.
    """

    emulator: Emulator
    name: str

    def invoke(self, event: Any) -> Any:
        text = json.dumps(event, ensure_ascii=False).encode()
        if len(text) > LONGEST_BYTES:
            raise EventTooLong(f"{len(text)} bytes")
        answer = self.emulator.functions.invoke(FunctionName=self.name, Payload=text)
        said = answer["Payload"].read()
        if "FunctionError" in answer:
            error = json.loads(said)
            raise FunctionFailed(error.get("errorType", "Unhandled"), error.get("errorMessage", ""))
        if len(said) > LONGEST_BYTES:
            raise FunctionFailed("Function.ResponseSizeTooLarge", f"{len(said)} bytes")
        return json.loads(said)

    def lets_in(self, api: str) -> bool:
        """Returns whether the function's policy allows this API to call it."""
        policy = json.loads(self.emulator.functions.get_policy(FunctionName=self.name)["Policy"])
        wanted = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/*"
        return any(
            statement["Principal"] == {"Service": "apigateway.amazonaws.com"}
            and statement["Action"] == "lambda:InvokeFunction"
            and {key.lower(): value for key, value in statement["Condition"]["ArnLike"].items()} == {"aws:sourcearn": wanted}
            for statement in policy["Statement"]
        )


@dataclass
class Rate:
    """A token bucket with a rate per second and a burst size."""

    rate: float
    burst: float
    _left: float = field(init=False)
    _at: float = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._left, self._at = self.burst, time.monotonic()

    def takes_one(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._left = min(self.burst, self._left + (now - self._at) * self.rate)
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


def throttled(rate: Rate, backend: Backend) -> Backend:
    """Responds with 429 to requests beyond the rate."""

    def answer(request: Received) -> Answer:
        if not rate.takes_one():
            return 429, [("Content-Type", "application/json")], b'{"message":"Too Many Requests"}'
        return backend(request)

    return answer


@contextmanager
def serving_api(emulator: Emulator, api: HttpApi, caller: Caller) -> Iterator[str]:
    """Yields the URL of an API. If the template requires signatures, it only accepts requests
    signed by this caller.
    """
    functions = {name: Deployed(emulator, name) for name in set(api.functions.values())}
    # In AWS, the API would respond with 500 for a function that it may not call.
    let_in = {name: function for name, function in functions.items() if function.lets_in(api.identifier)}
    [is_signed] = set(api.signed.values())
    limits = Limits(seconds=PATIENCE_SECONDS)
    gateway = Gateway(list(api.functions.items()), let_in, limits, caller.authorizer if is_signed else None)
    backend: Backend = gateway.answer
    if is_signed:
        backend = strict(Verifier(caller.key, caller.secret, REGION), backend)
    with serving(throttled(Rate(api.rate, api.burst), backend)) as url:
        yield url
