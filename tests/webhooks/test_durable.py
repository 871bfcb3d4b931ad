"""What happens to events when the server is killed, and to deliveries that a receiver refuses.

Stock MLflow keeps no events, so these tests are about this server alone.
"""

import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.http_server import Answer
from tests.support.servers import ServerlessMlflow, binary, subject_is_stock_mlflow
from tests.webhooks.options import subject_options
from tests.webhooks.receiver import Delivery, Receiver, receiving

pytestmark = pytest.mark.skipif(subject_is_stock_mlflow(), reason="stock MLflow does not keep events")

#: Makes the server check for due queues whenever it has read the stream, twice per second, instead of
#: once per minute.
FREQUENT_CHECKS = ("--run-indexing-interval", "0")
#: An age that no change reaches during a test, so that no event is queued or sent.
NEVER_INDEXED = ("--indexer-delay", "86400000")
#: The interval of these checks by default.
CHECK_SECONDS = 60
#: Timeout for deliveries that may have to wait until the lease of a killed server expires, 150 s.
LEASE_PATIENCE_SECONDS = 400
EVENTS = [
    {"entity": "REGISTERED_MODEL", "action": "CREATED"},
    {"entity": "MODEL_VERSION", "action": "CREATED"},
    {"entity": "MODEL_VERSION_TAG", "action": "SET"},
]
SECRET = "a secret"


class Setting:
    """A directory for the data of servers, of which one runs at a time, and a receiver."""

    def __init__(self, directory: Path, receiver: Receiver):
        self.receiver = receiver
        self._directory = directory
        self._server: ServerlessMlflow | None = None

    def start(self, *options: str) -> None:
        """Starts a server, which continues with the data of the former one."""
        options = (*subject_options(self._directory), *options)
        self._server = ServerlessMlflow(self._directory / "server", options=options)

    def kill(self) -> None:
        if self._server is not None:
            self._server.kill()

    def stop(self) -> None:
        """Stops the server with SIGTERM, as a user does."""
        assert self._server is not None
        self._server.stop()

    def change(self, webhook: str, **fields: object) -> None:
        assert self._server is not None
        url = f"{self._server.url}/api/2.0/mlflow/webhooks/{webhook}"
        response = requests.patch(url, json=fields, timeout=120)
        assert response.status_code == 200, response.text

    def call(self, path: str, **body: object) -> dict:
        assert self._server is not None
        response = requests.post(f"{self._server.url}/api/2.0/mlflow/{path}", json=body, timeout=120)
        assert response.status_code == 200, response.text
        return response.json()

    def subscribe(self, path: str) -> str:
        """Creates a webhook for a path of the receiver, and returns its id."""
        fields = {"name": path.strip("/"), "url": self.receiver.url + path, "secret": SECRET}
        return self.call("webhooks", **fields, events=EVENTS)["webhook"]["webhook_id"]

    def create_model_with_tags(self, name: str) -> None:
        """Causes four events, in this order: a model, a version, and two tags."""
        self.call("registered-models/create", name=name)
        self.call("model-versions/create", name=name, source="s3://bucket/m")
        for key in ("first", "second"):
            self.call("model-versions/set-tag", name=name, version="1", key=key, value="v")

    def webhooks(self, command: str, *options: str) -> list[str]:
        """Runs `mlflow-serverless webhooks`, and returns the lines of its output."""
        data = ("--data", str(self._directory / "server/data"))
        run = subprocess.run([binary(), "webhooks", command, *data, *options], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with receiving() as receiver:
        setting = Setting(tmp_path, receiver)
        yield setting
        setting.kill()


def events(deliveries: list[Delivery]) -> list[str]:
    """Returns the names of events, with the key of a tag."""
    return [f"{delivery.event} {delivery.message['data'].get('key', '')}".strip() for delivery in deliveries]


ALL_EVENTS = ["registered_model.created", "model_version.created", "model_version_tag.set first", "model_version_tag.set second"]


def test_events_that_were_not_queued_survive_a_kill(setting: Setting) -> None:
    """The server is killed after it has responded to the calls, and before it has queued the events."""
    setting.start(*NEVER_INDEXED)
    setting.subscribe("/hook")
    setting.create_model_with_tags("m")
    setting.kill()
    assert setting.receiver.deliveries() == []
    setting.start()
    assert events(setting.receiver.wait_for(4)) == ALL_EVENTS
    assert all(delivery.is_signed_with(SECRET) for delivery in setting.receiver.deliveries())


@pytest.mark.slow
def test_deliveries_in_progress_survive_a_kill(setting: Setting) -> None:
    """The server is killed while one receiver does not respond, and shortly after another one has
    failed. Both get all events after the next start, once the second attempt is due or the lease of
    the killed server has expired. This takes 150 s.
    """
    setting.start(*FREQUENT_CHECKS)
    for path in ("/silent", "/failing"):
        setting.subscribe(path)
    is_over = threading.Event()
    setting.receiver.answer = lambda delivery: failing_or_silent(delivery, is_over)
    setting.create_model_with_tags("m")
    setting.receiver.wait_for(1, "/silent")
    setting.receiver.wait_for(1, "/failing")
    setting.kill()
    is_over.set()
    before = {path: setting.receiver.deliveries(path) for path in ("/silent", "/failing")}
    assert {path: events(deliveries) for path, deliveries in before.items()} == dict.fromkeys(before, ALL_EVENTS[:1])

    setting.receiver.answer = lambda _: (200, [], b"")
    setting.start(*FREQUENT_CHECKS)
    for path, [first] in before.items():
        deliveries = setting.receiver.wait_for(5, path, LEASE_PATIENCE_SECONDS)
        assert events(deliveries) == [ALL_EVENTS[0], *ALL_EVENTS]
        assert deliveries[1].delivery_id == first.delivery_id
        assert deliveries[1].body == first.body
        assert len({delivery.delivery_id for delivery in deliveries}) == 4


def test_a_server_that_ends_leaves_no_delivery_behind(setting: Setting) -> None:
    """Stops the server while a receiver does not respond. The next server delivers at once, instead of
    waiting until the lease of the first one expires, 150 s after it was acquired.
    """
    setting.start()
    setting.subscribe("/silent")
    is_over = threading.Event()
    setting.receiver.answer = lambda delivery: failing_or_silent(delivery, is_over)
    setting.create_model_with_tags("m")
    [first] = setting.receiver.wait_for(1)
    setting.stop()
    is_over.set()
    setting.receiver.answer = lambda _: (200, [], b"")
    setting.start()
    deliveries = setting.receiver.wait_for(5)
    assert events(deliveries) == [ALL_EVENTS[0], *ALL_EVENTS]
    assert deliveries[1].delivery_id == first.delivery_id


def failing_or_silent(delivery: Delivery, is_over: threading.Event) -> Answer:
    if delivery.path == "/silent":
        is_over.wait()
    return 503, [], b""


def test_a_redirect_is_final_and_can_be_sent_again(setting: Setting) -> None:
    """A redirect is not followed. The later events are delivered. After `webhooks resend`, the running
    server delivers the refused event, with the same delivery id.
    """
    setting.start(*FREQUENT_CHECKS)
    hook = setting.subscribe("/hook")
    other = setting.subscribe("/other")
    setting.receiver.answer = lambda delivery: redirected(setting.receiver, delivery)
    setting.create_model_with_tags("m")
    deliveries = setting.receiver.wait_for(4, "/hook")
    assert events(deliveries) == ALL_EVENTS
    setting.receiver.wait_for(4, "/other")

    *lines, count = setting.webhooks("dead")
    assert count == "1 delivery has failed for good"
    assert len(lines) == 1
    assert f"webhook {hook} " in lines[0] and '"m"' in lines[0] and lines[0].endswith(": status 307")
    assert setting.webhooks("dead", "--webhook", other) == ["0 deliveries have failed for good"]

    setting.receiver.answer = lambda _: (200, [], b"")
    assert setting.webhooks("resend", "--webhook", other) == ["0 deliveries will be sent again"]
    setting.change(hook, status="DISABLED")
    [reason, count] = setting.webhooks("resend", "--webhook", hook)
    assert reason.endswith(": the webhook is disabled or does not subscribe to this event, so the delivery is kept")
    assert count == "0 deliveries will be sent again"
    setting.change(hook, status="ACTIVE")
    assert setting.webhooks("resend", "--webhook", hook) == ["1 delivery will be sent again"]
    again = setting.receiver.wait_for(5, "/hook")[4]
    [refused] = [delivery for delivery in deliveries if delivery.event == "model_version.created"]
    assert (again.delivery_id, again.body) == (refused.delivery_id, refused.body)
    assert again.is_signed_with(SECRET)
    assert setting.webhooks("dead") == ["0 deliveries have failed for good"]
    assert setting.receiver.deliveries("/elsewhere") == []


def redirected(receiver: Receiver, delivery: Delivery) -> Answer:
    """Redirects the first event of a version to another path."""
    is_redirected = delivery.path == "/hook" and delivery.event == "model_version.created"
    return (307, [("Location", f"{receiver.url}/elsewhere")], b"") if is_redirected else (200, [], b"")


def test_events_do_not_wait_for_a_check_of_due_queues(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the time from a call to its delivery, which is limited only in relation to the interval
    of the checks: if events waited for them, each event after the first would take a whole interval.
    """
    setting.start()
    setting.subscribe("/hook")
    seconds = []
    for number in range(20):
        begin = time.monotonic()
        setting.call("registered-models/create", name=f"m{number}")
        setting.receiver.wait_for(number + 1)
        seconds.append(time.monotonic() - begin)
    median = statistics.median(seconds)
    with capsys.disabled():
        print(f"\nfrom a call to its delivery: {median:.2f} s (median), {max(seconds):.2f} s (longest of {len(seconds)})")
    assert median < CHECK_SECONDS / 2
