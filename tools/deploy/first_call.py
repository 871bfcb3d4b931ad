"""The first call of a deployed stack.

The function `tracking` creates experiment 0 on its first start. Every MLflow server has this
experiment, and the first call of a client may use it through another function, for example to
export traces.
"""

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from stack import Stack

_PATH = "/health"
#: An event of API Gateway, reduced to the fields that a function reads.
_EVENT = {
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": _PATH,
    "rawQueryString": "",
    "headers": {"host": "deployment.invalid"},
    "requestContext": {
        "accountId": "",
        "apiId": "",
        "domainName": "deployment.invalid",
        "domainPrefix": "deployment",
        "http": {"method": "GET", "path": _PATH, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "make deploy"},
        "requestId": "deployment",
        "routeKey": "$default",
        "stage": "$default",
        "time": "01/Jan/2026:00:00:00 +0000",
        "timeEpoch": 1767225600000,
    },
    "isBase64Encoded": False,
}


def make_first_call(functions: Any, stack: Stack) -> str | None:
    """Invokes the function through Lambda's API. Returns an error or an unexpected response, or
    `None` if the call succeeds.
    """
    try:
        name = stack.resources()["TrackingFunction"]
        said = functions.invoke(FunctionName=name, Payload=json.dumps(_EVENT).encode())
    except (BotoCoreError, ClientError) as error:
        # The stack is deployed nevertheless.
        return str(error)
    answer = json.loads(said["Payload"].read() or b"null")
    if not said.get("FunctionError") and isinstance(answer, dict) and answer.get("statusCode") == 200:
        return None
    return json.dumps(answer)[:1_000]
