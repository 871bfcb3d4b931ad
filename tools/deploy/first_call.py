"""The first call of each function of a deployed stack.

Without it, a function that cannot start, for example because the table has an unsupported layout,
would only be noticed by a client. In addition, `tracking` creates experiment 0 on its first start.
Every MLflow server has this experiment, and the first call of a client may use it through another
function, for example to export traces.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stack import Stack

#: The timeout of a call is longer than that of API Gateway. Calls are not repeated.
_CONFIG = Config(read_timeout=60, retries={"total_max_attempts": 1})
#: Number of concurrent calls. It is low, because the quota of a new account is ten concurrent
#: executions, which clients of an existing stack use as well.
_AT_ONCE = 3
_PATH = "/health"
#: An event of API Gateway, reduced to the fields that a function reads.
_REQUEST = {
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
#: A batch without changes, for the function that consumes the stream.
_NO_CHANGES: dict[str, Any] = {"Records": []}
_INDEXER = "IndexerFunction"


def make_first_calls(stack: Stack, functions: Any = None) -> Iterator[str]:
    """Invokes each function through Lambda's API. Yields the functions that do not start, each with
    its error or response.
    """
    client = functions or boto3.client("lambda", config=_CONFIG)
    try:
        names = stack.resources("AWS::Lambda::Function")
    except (BotoCoreError, ClientError) as error:
        # The stack is deployed nevertheless.
        yield f"its functions could not be listed: {error}"
        return
    with ThreadPoolExecutor(_AT_ONCE) as calls:
        events = [_NO_CHANGES if resource == _INDEXER else _REQUEST for resource in names]
        for name, error in zip(names.values(), calls.map(lambda *of: _error(client, *of), names.values(), events)):
            if error:
                yield f"the first call of {name} failed: {error}"


def _error(client: Any, name: str, event: dict[str, Any]) -> str | None:
    """Returns an error or an unexpected response of a function. Most functions have no route for
    the path, and respond with 404.
    """
    try:
        said = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
    except (BotoCoreError, ClientError) as error:
        return str(error)
    answer = json.loads(said["Payload"].read() or b"null")
    if said.get("FunctionError") or not isinstance(answer, dict):
        return json.dumps(answer)[:1_000]
    return json.dumps(answer)[:1_000] if answer.get("statusCode", 200) >= 500 else None
