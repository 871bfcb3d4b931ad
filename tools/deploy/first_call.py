"""The first call of a deployed stack.

The function `tracking` makes the experiment 0 when it first starts. Every MLflow server has that experiment, and a client's first call may be one
about it to another function, such as an export of traces.
"""

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from stack import Stack

_PATH = "/health"
#: As API Gateway sends it; a function reads no more of it.
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
    """Calls the function with a client of Lambda. Returns what went wrong, or was said in place of an answer; None if all is well."""
    try:
        name = stack.resources()["TrackingFunction"]
        said = functions.invoke(FunctionName=name, Payload=json.dumps(_EVENT).encode())
    except (BotoCoreError, ClientError) as error:
        # The stack is there all the same.
        return str(error)
    answer = json.loads(said["Payload"].read() or b"null")
    if not said.get("FunctionError") and isinstance(answer, dict) and answer.get("statusCode") == 200:
        return None
    return json.dumps(answer)[:1_000]
