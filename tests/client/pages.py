"""Iterates over the pages of the client's searches."""

from collections.abc import Callable, Iterator

from mlflow.store.entities.paged_list import PagedList

_MOST_PAGES = 100


def pages(search: Callable[[str | None], PagedList]) -> Iterator[PagedList]:
    """Yields all pages of a search, which receives the token of each page. Fails if the pages never
    end.
    """
    token = None
    for _ in range(_MOST_PAGES):
        page = search(token)
        yield page
        token = page.token
        if not token:
            return
    raise AssertionError(f"more than {_MOST_PAGES} pages")
