"""Bodies of requests, in a form that passes through API Gateway unchanged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from requests import PreparedRequest

#: Path of file uploads. MLflow derives the content type from the file's name. API Gateway passes a
#: body with a text type to Lambda as text, and replaces bytes that are not valid UTF-8.
_FILES = "/mlflow-artifacts/artifacts/"


def prepare(request: PreparedRequest) -> None:
    """Sets the content type and the length of an upload."""
    _set_length_of_empty_file(request)
    if request.method == "PUT" and _FILES in (request.url or ""):
        request.headers["Content-Type"] = "application/octet-stream"


def rewind(request: PreparedRequest) -> bool:
    """Prepares a body to be sent again. Returns whether this is possible."""
    body = request.body
    if body is None or isinstance(body, bytes | str):
        return True
    position = getattr(request, "_body_position", None)
    if not isinstance(position, int) or not hasattr(body, "seek"):
        return False
    body.seek(position)
    return True


def _set_length_of_empty_file(request: PreparedRequest) -> None:
    """Sets the length of an empty file. `requests` would use chunked encoding, which API Gateway may not support."""
    if "Transfer-Encoding" not in request.headers or not hasattr(request.body, "seek"):
        return
    at = request.body.tell()
    if request.body.seek(0, os.SEEK_END) == at:
        request.body = b""
        del request.headers["Transfer-Encoding"]
        request.headers["Content-Length"] = "0"
    else:
        request.body.seek(at)
