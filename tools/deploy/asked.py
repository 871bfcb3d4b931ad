"""Questions to AWS whose answer is good to know, and without which a deployment can begin all the same."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}


@contextmanager
def unless_denied(what: str) -> Iterator[None]:
    """Whoever deploys need not have the right to ask."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in _DENIED:
            raise
        print(f"Note: it cannot be found out {what}: the right is missing ({error.operation_name}).")
