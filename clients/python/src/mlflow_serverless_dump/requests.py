"""Reads from a tracking server."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from mlflow.exceptions import MlflowException

Item = TypeVar("Item")
Result = TypeVar("Result")


def pages(search: Callable[..., Any], **arguments: Any) -> Iterator[list[Any]]:
    """Yields the pages of a search."""
    token = None
    while True:
        page = search(page_token=token, **arguments)
        yield list(page)
        token = page.token
        if not token:
            return


def in_parallel(pool: ThreadPoolExecutor, window: int, read: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Exception]]:
    """Yields the results for items, or the exceptions, in the order of the items. At most `window`
    results are held in memory.
    """
    pending: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        pending.append((item, pool.submit(read, item)))
        if len(pending) >= window:
            yield _finished(*pending.popleft())
    while pending:
        yield _finished(*pending.popleft())


def _finished(item: Item, future: "Future[Result]") -> tuple[Item, Result | Exception]:
    error = future.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    return item, error if error is not None else future.result()


def is_unsupported(error: Exception) -> bool:
    """Returns whether a server or plugin does not have the endpoint of a request at all."""
    if isinstance(error, NotImplementedError):
        return True
    return isinstance(error, MlflowException) and error.error_code in ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED")
