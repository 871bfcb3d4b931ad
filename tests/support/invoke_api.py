"""Lambda's API for invoking functions, for `aws lambda invoke` and the feed of `mlflow-serverless
engine`.
"""

import json
import re
from collections.abc import Mapping

from .http_server import Answer, Backend, Received
from .runtime_api import EventTooLong, Function, FunctionFailed

_INVOCATION = re.compile(r"/2015-03-31/functions/([\w-]+)/invocations")


def invoking(functions: Mapping[str, Function]) -> Backend:
    """Returns a backend that handles synchronous invocations of functions by name."""

    def answer(request: Received) -> Answer:
        found = _INVOCATION.fullmatch(request.target)
        if request.method != "POST" or not found or found[1] not in functions:
            return _json(404, {"Type": "User", "Message": f"Function not found: {request.target}"})
        try:
            return _json(200, functions[found[1]].invoke(json.loads(request.body)))
        except FunctionFailed as why:
            error = {"errorType": why.kind, "errorMessage": why.message}
            return _json(200, error, ("X-Amz-Function-Error", "Unhandled"))
        except EventTooLong as why:
            return _json(413, {"Type": "User", "message": str(why)})

    return answer


def _json(status: int, value: object, *headers: tuple[str, str]) -> Answer:
    return status, [("Content-Type", "application/json"), *headers], json.dumps(value).encode()
