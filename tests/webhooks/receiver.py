"""A receiver of webhooks that records what it is sent, and responds as a test decides."""

import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_server import Answer, Received, serving

#: Default timeout for a delivery. The stream is read twice a second, and the machine may be busy.
_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Delivery:
    """A delivery as the receiver has recorded it."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> str:
        message = self.message
        return f"{message['entity']}.{message['action']}"

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def comparable_body(self) -> bytes:
        """Returns the body, byte for byte, without the value of its time."""
        return re.sub(rb'("timestamp": ")[^"]+', rb"\1TIME", self.body, count=1)

    @property
    def delivery_id(self) -> str:
        return self.headers["x-mlflow-delivery-id"]

    def is_signed_with(self, secret: str) -> bool:
        """Checks the signature as the guide tells receivers to."""
        signed = f"{self.delivery_id}.{self.headers['x-mlflow-timestamp']}.".encode() + self.body
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
        return hmac.compare_digest(self.headers["x-mlflow-signature"], "v1," + base64.b64encode(digest).decode())


@dataclass
class Receiver:
    """The deliveries of one server. `answer` may be replaced while it runs."""

    url: str = ""
    answer: Callable[[Delivery], Answer] = lambda _: (200, [], b"")
    _deliveries: list[Delivery] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, request: Received) -> Answer:
        headers = {name.lower(): value for name, value in request.headers}
        delivery = Delivery(request.target, headers, request.body)
        with self._changed:
            self._deliveries.append(delivery)
            self._changed.notify_all()
        return self.answer(delivery)

    def wait_for(self, count: int, path: str | None = None, patience: float = _PATIENCE_SECONDS) -> list[Delivery]:
        """Returns the deliveries, to one path or all, once there are at least `count`."""
        deadline = time.monotonic() + patience
        with self._changed:
            while len(found := self._to(path)) < count:
                if not self._changed.wait(deadline - time.monotonic()):
                    events = [delivery.event for delivery in found]
                    raise TimeoutError(f"{len(found)} of {count} deliveries have arrived: {events}")
            return found

    def deliveries(self, path: str | None = None) -> list[Delivery]:
        with self._changed:
            return self._to(path)

    def _to(self, path: str | None) -> list[Delivery]:
        return [delivery for delivery in self._deliveries if path in (None, delivery.path)]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Runs a receiver on a free port."""
    receiver = Receiver()
    with serving(receiver.take) as url:
        receiver.url = url
        yield receiver
