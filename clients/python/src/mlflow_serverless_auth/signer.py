"""AWS Signature Version 4 for requests sent with the package `requests`."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from mlflow_serverless_auth import uploads, url

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from requests import PreparedRequest, Response

_SERVICE = "execute-api"

#: Headers that are signed, in addition to all `x-amz-` headers, which the protocol requires. Other
#: headers are not signed, because proxies may change them, for example `User-Agent`,
#: `Accept-Encoding` and `Connection`.
_SIGNED = {"host", "content-type"}
_AMAZON = "x-amz-"

#: Headers that botocore adds. Only temporary credentials have a security token.
_ADDED = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")


class SigningError(Exception):
    """A request cannot be signed. The message contains the reason."""


class SigV4:
    """Signs requests to an API of API Gateway, as an `auth` of `requests`. Thread-safe.

    Args:
        session: botocore session that provides the credentials, and the region for hosts that do not contain one.
            By default, a new session is created at the first request. Expiring credentials are refreshed by botocore.
    """

    def __init__(self, session: Session | None = None) -> None:
        self._session = session
        self._credentials: Credentials | None = None
        self._lock = threading.Lock()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Signs a request in place: normalizes the encoding of its URL, and adds headers.

        Raises:
            SigningError: No credentials or no region are configured, or the body can only be read once.
            botocore.exceptions.BotoCoreError: The configured credentials could not be obtained.
        """
        if request.url is None or request.method is None:
            raise SigningError("A request without a URL or a method cannot be signed.")
        request.url = url.encoded(request.url)
        if isinstance(request.body, str):
            request.body = request.body.encode()
        _check_body(request.body)
        uploads.prepare(request)
        for name in _ADDED:
            request.headers.pop(name, None)
        signed = AWSRequest(request.method, request.url, _headers_to_sign(request), data=request.body)
        SigV4Auth(self._current_credentials(), _SERVICE, self._region(request.url)).add_auth(signed)
        request.headers.update({name: signed.headers[name] for name in _ADDED if name in signed.headers})
        request.register_hook("response", before_redirect)  # type: ignore[no-untyped-call]
        return request

    def _current_credentials(self) -> ReadOnlyCredentials:
        """Returns a consistent snapshot of access key, secret key and token."""
        with self._lock:
            if self._credentials is None:
                self._credentials = self._botocore().get_credentials()
            credentials = self._credentials
        if credentials is None:
            raise SigningError(
                "There are no AWS credentials to sign the request with. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or run where a role provides them. If the server has users, run "
                "mlflow-serverless login."
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
        """Returns the session, which is created on first use. The caller must hold the lock."""
        if self._session is None:
            self._session = Session()
        return self._session


def _headers_to_sign(request: PreparedRequest) -> dict[str, str]:
    """Returns the headers to sign. botocore adds the date and the token, and `host` if it is missing."""
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    return {name: value for name, value in headers.items() if name in _SIGNED or name.startswith(_AMAZON)}


def _text(header: Any) -> str:
    """Returns a header value as text, because `requests` also accepts bytes."""
    return header.decode("latin-1") if isinstance(header, bytes) else header


def _check_body(body: Any) -> None:
    """Checks that a body can be read twice, once for its hash and once to send it, and that a file returns bytes."""
    if not body or isinstance(body, bytes | bytearray):
        return
    if not (hasattr(body, "read") and hasattr(body, "seek")):
        raise SigningError(
            "The body of a signed request is read twice: give it as bytes, as text, or as a file that can be rewound."
        )
    if not isinstance(body.read(0), bytes):
        raise SigningError("A file that is sent in a signed request has to be opened in binary mode.")


def before_redirect(response: Response, **_: Any) -> None:
    """Removes the credentials before a redirect is followed. A signature applies to one URL, and no token may be
    disclosed.

    `requests` copies the headers of this request to the next one. It only drops `Authorization`, and only if the host
    changes. S3 refuses a presigned URL with any of these headers.
    """
    headers = response.request.headers
    for name in list(headers) if response.is_redirect else ():
        if name.lower() == "authorization" or name.lower().startswith(_AMAZON):
            del headers[name]
