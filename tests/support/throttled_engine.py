"""An engine of which a part is throttled, as DynamoDB throttles a partition that gets more requests than it takes."""

import json

from tests.support.engine import Engine
from tests.support.engine_proxy import Answer, EngineProxy, Headers

_REFUSAL = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
    "message": "Throughput exceeds the current capacity of your table or index.",
}).encode()


class ThrottledEngine(EngineProxy):
    """A request that names one of the ids in `throttled` is refused; all others reach the engine."""

    def __init__(self, engine: Engine):
        self.throttled: set[str] = set()
        self.refused = 0
        super().__init__(engine)

    def answer(self, headers: Headers, body: bytes) -> Answer:
        if any(name.encode() in body for name in self.throttled):
            self.refused += 1
            return 400, "application/x-amz-json-1.0", _REFUSAL
        return self.forward(headers, body)
