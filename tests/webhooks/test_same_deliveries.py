"""The same calls to stock MLflow and to this server, each with a receiver. The receivers have to
record the same deliveries.
"""

import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from tests.support.next_release import next_release
from tests.support.servers import NextStockMlflow, ServerlessMlflow, StockMlflow, subject_is_stock_mlflow
from tests.webhooks.options import STOCK_ENVIRONMENT, subject_options
from tests.webhooks.receiver import Delivery, Receiver, receiving

#: All events that both servers send, in the form of requests.
EVENTS = [
    {"entity": entity, "action": action}
    for entity, actions in {
        "REGISTERED_MODEL": ["CREATED"],
        "MODEL_VERSION": ["CREATED"],
        "MODEL_VERSION_TAG": ["SET", "DELETED"],
        "MODEL_VERSION_ALIAS": ["CREATED", "DELETED"],
        "PROMPT": ["CREATED"],
        "PROMPT_VERSION": ["CREATED"],
        "PROMPT_TAG": ["SET", "DELETED"],
        "PROMPT_VERSION_TAG": ["SET", "DELETED"],
        "PROMPT_ALIAS": ["CREATED", "DELETED"],
    }.items()
    for action in actions
]
#: Their names in bodies.
SENT = {f"{event['entity']}.{event['action']}".lower() for event in EVENTS}
SECRET = "s3cret ✓"
IS_PROMPT = {"key": "mlflow.prompt.is_prompt", "value": "true"}
TEXT = {"key": "mlflow.prompt.text", "value": "Hi {{name}} — \"tab\t\", \U0001f600 \u2028"}
SOURCE = {"source": "s3://bucket/m"}


@dataclass
class Subscribed:
    """A server with a webhook for all events."""

    url: str
    receiver: Receiver
    statuses: list[int] = field(default_factory=list)

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> requests.Response:
        arguments = {"params": body} if method == "GET" else {"json": body}
        return requests.request(method, f"{self.url}/api/2.0/mlflow/{path}", timeout=120, **arguments)

    def call(self, method: str, path: str, body: dict[str, Any]) -> None:
        self.statuses.append(self.send(method, path, body).status_code)

    def subscribe(self, path: str, events: list[dict[str, str]], **fields: Any) -> str:
        body = {"name": path.strip("/"), "url": self.receiver.url + path, "events": events, **fields}
        made = self.send("POST", "webhooks", body)
        assert made.status_code == 200, made.text
        return made.json()["webhook"]["webhook_id"]


@pytest.fixture(scope="module", params=["installed release", pytest.param("next release", marks=pytest.mark.slow)])
def sides(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[tuple[Subscribed, Subscribed]]:
    """Yields stock MLflow, of each release in turn, and this server."""
    directory = tmp_path_factory.mktemp("webhooks")
    with ExitStack() as stops:
        if request.param == "next release":
            reference = NextStockMlflow(directory / "reference", next_release(), environment=STOCK_ENVIRONMENT)
        else:
            reference = StockMlflow(directory / "reference", environment=STOCK_ENVIRONMENT)
        stops.callback(reference.stop)
        if subject_is_stock_mlflow():
            subject = StockMlflow(directory / "subject", environment=STOCK_ENVIRONMENT)
        else:
            subject = ServerlessMlflow(directory / "subject", options=subject_options(directory))
        stops.callback(subject.stop)
        both = [Subscribed(server.url, stops.enter_context(receiving())) for server in (reference, subject)]
        for side in both:
            side.subscribe("/all", EVENTS, secret=SECRET)
        # Stock MLflow caches the list of webhooks for a minute, beginning with its first event.
        yield both[0], both[1]


def version_calls(name: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Returns calls about version 1 of a model or a prompt, with all ways to write a version."""
    of = {"name": name, "version": "1"}
    return [
        ("POST", "model-versions/set-tag", {**of, "key": "k", "value": "é\"\\/\x7f\x01"}),
        ("POST", "model-versions/set-tag", {**of, "key": "k", "value": "é\"\\/\x7f\x01"}),
        ("POST", "model-versions/set-tag", {**of, "version": "01", "key": "empty", "value": ""}),
        ("DELETE", "model-versions/delete-tag", {**of, "key": "k"}),
        ("DELETE", "model-versions/delete-tag", {**of, "key": "k"}),
        ("DELETE", "model-versions/delete-tag", {**of, "key": "never"}),
        ("POST", "registered-models/alias", {**of, "alias": "champion"}),
        ("POST", "registered-models/alias", {**of, "alias": "champion"}),
        ("DELETE", "registered-models/alias", {"name": name, "alias": "champion"}),
        ("DELETE", "registered-models/alias", {"name": name, "alias": "champion"}),
        ("DELETE", "registered-models/alias", {"name": name, "alias": "never"}),
        # Refused calls send nothing.
        ("POST", "model-versions/set-tag", {**of, "version": "7", "key": "k", "value": "v"}),
        ("POST", "model-versions/set-tag", {**of, "version": "x", "key": "k", "value": "v"}),
        ("POST", "registered-models/alias", {**of, "alias": "v1"}),
        ("POST", "registered-models/alias", {**of, "version": "7", "alias": "a"}),
    ]


#: Calls, by the model that they are about.
CALLS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "plain": [
        ("POST", "registered-models/create", {"name": "plain", "description": "dé", "tags": [{"key": "a", "value": "b"}]}),
        ("POST", "registered-models/create", {"name": "plain"}),
        ("POST", "model-versions/create", {"name": "plain", **SOURCE, "tags": [{"key": "a", "value": "b"}]}),
        ("POST", "model-versions/create", {"name": "plain", **SOURCE, "description": "text", "run_id": "a" * 32}),
        ("POST", "model-versions/create", {"name": "plain"}),
        *version_calls("plain"),
        ("POST", "registered-models/set-tag", {"name": "plain", "key": "k", "value": "v"}),
        ("DELETE", "registered-models/delete-tag", {"name": "plain", "key": "k"}),
        ("PATCH", "registered-models/update", {"name": "plain", "description": "other"}),
        ("PATCH", "model-versions/update", {"name": "plain", "version": "1", "description": "other"}),
        ("POST", "model-versions/transition-stage", {"name": "plain", "version": "1", "stage": "Production"}),
        ("DELETE", "model-versions/delete", {"name": "plain", "version": "2"}),
    ],
    "renamed": [
        ("POST", "registered-models/create", {"name": "first"}),
        ("POST", "registered-models/rename", {"name": "first", "new_name": "renamed"}),
        ("POST", "model-versions/create", {"name": "renamed", **SOURCE}),
        ("POST", "model-versions/set-tag", {"name": "renamed", "version": "1", "key": "k", "value": "v"}),
        ("DELETE", "model-versions/delete-tag", {"name": "renamed", "version": "1", "key": "k"}),
        ("POST", "registered-models/alias", {"name": "renamed", "version": "1", "alias": "a"}),
        ("DELETE", "registered-models/delete", {"name": "renamed"}),
        ("POST", "model-versions/set-tag", {"name": "renamed", "version": "1", "key": "k", "value": "v"}),
    ],
    "prompt": [
        ("POST", "registered-models/create", {"name": "prompt", "tags": [IS_PROMPT, {"key": "a", "value": "b"}]}),
        ("POST", "model-versions/create", {"name": "prompt", "source": "dummy-source", "tags": [IS_PROMPT, TEXT]}),
        ("POST", "model-versions/create", {"name": "prompt", **SOURCE, "tags": [TEXT]}),
        *version_calls("prompt"),
        ("POST", "registered-models/set-tag", {"name": "prompt", "key": "k", "value": "v"}),
        ("POST", "registered-models/set-tag", {"name": "prompt", "key": "k", "value": "v"}),
        ("DELETE", "registered-models/delete-tag", {"name": "prompt", "key": "k"}),
        ("DELETE", "registered-models/delete-tag", {"name": "prompt", "key": "k"}),
    ],
    "becomes": [
        ("POST", "registered-models/create", {"name": "becomes", "tags": [{**IS_PROMPT, "value": "false"}]}),
        ("POST", "registered-models/set-tag", {"name": "becomes", **IS_PROMPT}),
        ("POST", "registered-models/set-tag", {"name": "becomes", "key": "k", "value": "v"}),
        ("POST", "registered-models/set-tag", {"name": "becomes", **IS_PROMPT, "value": "false"}),
        ("POST", "registered-models/set-tag", {"name": "becomes", "key": "k", "value": "v"}),
        ("POST", "registered-models/set-tag", {"name": "becomes", **IS_PROMPT, "value": "TRUE"}),
        ("DELETE", "registered-models/delete-tag", {"name": "becomes", "key": IS_PROMPT["key"]}),
    ],
    "upper": [
        ("POST", "registered-models/create", {"name": "upper", "tags": [{**IS_PROMPT, "value": "TRUE"}]}),
        ("POST", "registered-models/set-tag", {"name": "upper", "key": "k", "value": "v"}),
    ],
}


def test_calls_are_delivered_as_by_stock(sides: tuple[Subscribed, Subscribed]) -> None:
    """Every call of the registry, sent to both servers."""
    reference, subject = sides
    for name, calls in CALLS.items():
        for side in sides:
            for call in calls:
                side.call(*call)
            # The last event about the model: what arrives later would be a further event.
            last = f"{name}-last"
            side.call("POST", "registered-models/create", {"name": last})
    assert reference.statuses == subject.statuses
    expected = settled(reference.receiver)
    found = subject.receiver.wait_for(len(expected))
    assert bodies(found) == bodies(expected)
    assert {delivery.event for delivery in expected} == SENT
    for delivery in expected + found:
        check_headers(delivery)
    assert len({delivery.delivery_id for delivery in found}) == len(found)
    if not subject_is_stock_mlflow():
        assert in_order(found) == in_order_of_calls(subject)


def settled(receiver: Receiver) -> list[Delivery]:
    """Returns the deliveries of stock MLflow, which sends concurrently and in any order, once no
    further one has arrived for some time. It only sends at the time of the call.
    """
    count = -1
    while count != len(deliveries := receiver.deliveries("/all")):
        count = len(deliveries)
        time.sleep(2)
    return deliveries


def bodies(deliveries: list[Delivery]) -> Counter[bytes]:
    return Counter(delivery.comparable_body for delivery in deliveries)


def check_headers(delivery: Delivery) -> None:
    assert delivery.headers["content-type"] == "application/json"
    assert str(uuid.UUID(delivery.delivery_id)) == delivery.delivery_id
    assert re.fullmatch(r"\d{10}", delivery.headers["x-mlflow-timestamp"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00", delivery.message["timestamp"])
    assert delivery.is_signed_with(SECRET)


def in_order(deliveries: list[Delivery]) -> dict[str, list[str]]:
    """Returns the times of the events of each model, in the order of their arrival."""
    times: dict[str, list[str]] = {}
    for delivery in deliveries:
        times.setdefault(delivery.message["data"]["name"], []).append(delivery.message["timestamp"])
    return times


def in_order_of_calls(subject: Subscribed) -> dict[str, list[str]]:
    return {name: sorted(times) for name, times in in_order(subject.receiver.deliveries("/all")).items()}


def test_a_large_version_is_created_in_spite_of_a_webhook(sides: tuple[Subscribed, Subscribed]) -> None:
    """The tags of a version fill several items, and so does the body of the event."""
    tags = [{"key": f"k{number}", "value": "é" * 5_000} for number in range(60)]
    body = {"name": "large", **SOURCE, "tags": tags}
    found = []
    for side in sides:
        for call in (("registered-models/create", {"name": "large"}), ("model-versions/create", body)):
            assert side.send("POST", *call).status_code == 200
        found.append([delivery for delivery in arrived(side, "large", 2) if delivery.event == "model_version.created"])
    reference, subject = found
    assert bodies(reference) == bodies(subject)
    assert len(subject[0].body) > 1_000_000


def arrived(side: Subscribed, name: str, count: int) -> list[Delivery]:
    """Returns the deliveries about a model, once there are `count`."""
    total = 0
    while True:
        deliveries = side.receiver.wait_for(total + 1, "/all")
        about = [delivery for delivery in deliveries if delivery.message["data"]["name"] == name]
        if len(about) >= count:
            return about
        total = len(deliveries)


@pytest.mark.skipif(subject_is_stock_mlflow(), reason="stock MLflow does not keep events")
def test_only_subscribed_and_active_webhooks_receive_events(sides: tuple[Subscribed, Subscribed]) -> None:
    """Of several webhooks, each receives its own events, until it is disabled or deleted."""
    _, subject = sides
    created = {"entity": "REGISTERED_MODEL", "action": "CREATED"}
    kept = subject.subscribe("/kept", [created])
    disabled = subject.subscribe("/disabled", [created], status="DISABLED")
    deleted = subject.subscribe("/deleted", [created])
    other = subject.subscribe("/other", [{"entity": "PROMPT", "action": "CREATED"}])
    assert subject.send("DELETE", f"webhooks/{deleted}").status_code == 200
    subject.call("POST", "registered-models/create", {"name": "some"})
    (delivery,) = subject.receiver.wait_for(1, "/kept")
    assert "x-mlflow-signature" not in delivery.headers
    assert subject.send("PATCH", f"webhooks/{kept}", {"status": "DISABLED"}).status_code == 200
    assert subject.send("PATCH", f"webhooks/{disabled}", {"status": "ACTIVE"}).status_code == 200
    subject.call("POST", "registered-models/create", {"name": "another"})
    subject.receiver.wait_for(1, "/disabled")
    assert [len(subject.receiver.deliveries(path)) for path in ("/kept", "/deleted", "/other")] == [1, 0, 0]
    for webhook in (kept, disabled, other):
        assert subject.send("DELETE", f"webhooks/{webhook}").status_code == 200
