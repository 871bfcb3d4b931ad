"""AWS Signature Version 4 for the requests of `requests`."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from mlflow_serverless_auth import url

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from requests import PreparedRequest, Response

_SERVICE = "execute-api"

#: Beside these, all headers that begin with `x-amz-` are signed, as the protocol asks. The rest is not: what stands
#: between client and gateway may change `User-Agent`, `Accept-Encoding`, `Connection` and others.
_SIGNED = {"host", "content-type"}
_AMAZON = "x-amz-"

#: MLflow sends files here, with a type that it guesses from their names. API Gateway hands a Lambda what is called text as a text, in
#: which bytes that are no UTF-8 are replaced.
_FILES = "/mlflow-artifacts/artifacts/"

#: What botocore adds; the token belongs to temporary credentials.
_ADDED = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")


class SigningError(Exception):
    """A request cannot be signed; the message says what is missing."""


class SigV4:
    """Signs requests to an API of API Gateway; an `auth` for `requests`. May be used by several threads.

    Args:
        session: where credentials come from, and the region of hosts that do not name one; botocore's default if
            none is given. It is asked at the first request. Credentials that expire are renewed by it.
    """

    def __init__(self, session: Session | None = None) -> None:
        self._session = session
        self._credentials: Credentials | None = None
        self._lock = threading.Lock()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Sign a request, which is changed: its URL is encoded as AWS reads it, and headers are added.

        Raises:
            SigningError: there are no credentials, there is no region, or the body can be read only once.
            botocore.exceptions.BotoCoreError: credentials are configured, but cannot be had.
        """
        if request.url is None or request.method is None:
            raise SigningError("A request without a URL or a method cannot be signed.")
        request.url = url.encoded(request.url)
        if isinstance(request.body, str):
            request.body = request.body.encode()
        _check_body(request.body)
        _say_the_length_of_an_empty_file(request)
        if request.method == "PUT" and _FILES in request.url:
            request.headers["Content-Type"] = "application/octet-stream"
        for name in _ADDED:
            request.headers.pop(name, None)
        signed = AWSRequest(request.method, request.url, _headers_to_sign(request), data=request.body)
        SigV4Auth(self._current_credentials(), _SERVICE, self._region(request.url)).add_auth(signed)
        request.headers.update({name: signed.headers[name] for name in _ADDED if name in signed.headers})
        request.register_hook("response", _before_redirect)  # type: ignore[no-untyped-call]
        return request

    def _current_credentials(self) -> ReadOnlyCredentials:
        """Access key, secret and token of the same moment."""
        with self._lock:
            if self._credentials is None:
                self._credentials = self._botocore().get_credentials()
            credentials = self._credentials
        if credentials is None:
            raise SigningError(
                "There are no AWS credentials to sign the request with. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or run where a role provides them."
            )
        return credentials.get_frozen_credentials()

    def _region(self, of_url: str) -> str:
        region = url.region(of_url) or os.environ.get("AWS_REGION")
        if not region:
            with self._lock:
                region = self._botocore().get_config_variable("region")
        if not region:
            raise SigningError(
                f"The host of {of_url} does not name an AWS region. Set AWS_REGION to the region of the API."
            )
        return region

    def _botocore(self) -> Session:
        """The session, made when it is first needed; called with the lock held."""
        if self._session is None:
            self._session = Session()
        return self._session


def _headers_to_sign(request: PreparedRequest) -> dict[str, str]:
    """botocore adds `host` if it is not among them, and the date and the token."""
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    return {name: value for name, value in headers.items() if name in _SIGNED or name.startswith(_AMAZON)}


def _text(header: Any) -> str:
    """`requests` takes headers as bytes, too."""
    return header.decode("latin-1") if isinstance(header, bytes) else header


def _check_body(body: Any) -> None:
    """The body is signed as it is sent, so a stream has to be bytes, and readable twice: for its hash, then sent."""
    if not body or isinstance(body, bytes | bytearray):
        return
    if not (hasattr(body, "read") and hasattr(body, "seek")):
        raise SigningError(
            "The body of a signed request is read twice: give it as bytes, as text, or as a file that can be rewound."
        )
    if not isinstance(body.read(0), bytes):
        raise SigningError("A file that is sent in a signed request has to be opened in binary mode.")


def _say_the_length_of_an_empty_file(request: PreparedRequest) -> None:
    """`requests` sends a file of 0 bytes in chunks and without a length, which nobody says that API Gateway takes."""
    if "Transfer-Encoding" not in request.headers or not hasattr(request.body, "seek"):
        return
    at = request.body.tell()
    if request.body.seek(0, os.SEEK_END) == at:
        request.body = b""
        del request.headers["Transfer-Encoding"]
        request.headers["Content-Length"] = "0"
    else:
        request.body.seek(at)


def _before_redirect(response: Response, **_: Any) -> None:
    """Let no signature follow a redirect: it holds for one URL, and its token is nobody else's business.

    `requests` makes the next request out of this one. By itself it leaves out `Authorization`, and only for another
    host; S3 refuses a presigned URL that comes with any of these headers.
    """
    headers = response.request.headers
    for name in list(headers) if response.is_redirect else ():
        if name.lower() == "authorization" or name.lower().startswith(_AMAZON):
            del headers[name]
