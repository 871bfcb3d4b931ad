"""An engine with throttled partitions, like DynamoDB if a partition exceeds its throughput."""

import json

from tests.support.engine import Engine
from tests.support.engine_proxy import Answer, EngineProxy, Headers

_REFUSAL = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
    "message": "Throughput exceeds the current capacity of your table or index.",
}).encode()


class ThrottledEngine(EngineProxy):
    """Refuses requests that contain one of the ids in `throttled`, and forwards all others."""

    def __init__(self, engine: Engine):
        self.throttled: set[str] = set()
        self.refused = 0
        super().__init__(engine)

    def answer(self, headers: Headers, body: bytes) -> Answer:
        if any(name.encode() in body for name in self.throttled):
            self.refused += 1
            return 400, "application/x-amz-json-1.0", _REFUSAL
        return self.forward(headers, body)
