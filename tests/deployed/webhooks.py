"""A step that uses webhooks of a deployment. The environment variables in `RECEIVERS`, which
`template.yaml` does not set, allow the functions to send requests to receivers on this machine.
"""

import statistics
import time
from pathlib import Path

import requests
from mlflow_serverless_auth import SigV4

from tests.webhooks.receiver import receiving

RECEIVERS = {"WEBHOOKS_ALLOW_HTTP": "on", "WEBHOOKS_ALLOW_PRIVATE_ADDRESSES": "on"}

_SECONDS = 300
_V2 = "/api/2.0/mlflow"
_EVENTS = [{"entity": "MODEL_VERSION", "action": "CREATED"}]
_VERSIONS = 5
#: The interval of the indexer's ticks.
_TICK_SECONDS = 60


def webhooks(world, directory: Path) -> None:
    """Creates, tests, changes and deletes a webhook. Prints the median time from the creation of a model
    version to the delivery of its event, and checks that the events do not wait for a tick.
    """

    def call(method: str, path: str, body: dict | None = None) -> dict:
        answer = requests.request(method, f"{world.signed}{_V2}/{path}", json=body, auth=SigV4(), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json()

    with receiving() as receiver:
        url = f"{receiver.url}/hook"
        hook = call("POST", "webhooks", {"name": "deploy", "url": url, "events": _EVENTS})["webhook"]["webhook_id"]
        result = call("POST", f"webhooks/{hook}/test", {})["result"]
        assert result["success"] is True, result
        [example] = receiver.wait_for(1, "/hook")
        assert example.event == "model_version.created"

        call("POST", "registered-models/create", {"name": "delivered"})
        seconds = []
        for number in range(_VERSIONS):
            begin = time.monotonic()
            call("POST", "model-versions/create", {"name": "delivered", "source": f"s3://elsewhere/{number}"})
            *_, delivery = receiver.wait_for(number + 2, "/hook")
            seconds.append(time.monotonic() - begin)
            assert delivery.message["data"]["version"] == str(number + 1)
        delay = int(world.stack.parameters["IndexingDelay"])
        median = statistics.median(seconds)
        print(f"\nfrom a call to its delivery: {median:.1f} s (median of {_VERSIONS}), with an indexing delay of {delay} s")
        assert median < _TICK_SECONDS / 2

        # The body of this event is so large that it is stored in parts.
        tags = [{"key": f"k{number}", "value": "x" * 5_000} for number in range(30)]
        call("POST", "model-versions/create", {"name": "delivered", "source": "s3://elsewhere/large", "tags": tags})
        assert len(receiver.wait_for(_VERSIONS + 2, "/hook")[-1].body) > 150_000

        # An event that the receiver refuses with status 400 is not sent again.
        receiver.answer = lambda _: (400, [], b"")
        call("POST", "model-versions/create", {"name": "delivered", "source": "s3://elsewhere/refused"})
        receiver.wait_for(_VERSIONS + 3, "/hook")
        call("PATCH", f"webhooks/{hook}", {"status": "DISABLED"})
        assert [one["webhook_id"] for one in call("GET", "webhooks")["webhooks"]] == [hook]
        call("DELETE", f"webhooks/{hook}")
