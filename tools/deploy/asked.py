"""Optional checks, which are skipped if the caller lacks the permission for them."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

_DENIED = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedException", "UnauthorizedOperation"}


@contextmanager
def unless_denied(what: str) -> Iterator[None]:
    """Skips a check for which the caller has no permission."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in _DENIED:
            raise
        print(f"Note: cannot check {what}: the permission for {error.operation_name} is missing.")
