"""A pair of servers for what is started by hand: stock MLflow and ours."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.http import Side
from tests.support.servers import StockMlflow, start_subject

#: Long, and different on both sides; see StockMlflow for the reason.
FIRST_EXPERIMENT_OF_REFERENCE = 710_000_000
FIRST_EXPERIMENT_OF_SUBJECT = 820_000_000


@contextmanager
def pair(plain_ids: bool = False, options: Sequence[str] = ()) -> Iterator[tuple[Side, Side]]:
    """Both servers over empty stores. With `plain_ids`, experiments are numbered from 1; the options are for ours."""
    ids = (None, None) if plain_ids else (FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT)
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stops:
        reference = StockMlflow(Path(directory, "reference"), ids[0])
        stops.callback(reference.stop)
        subject = start_subject(Path(directory, "subject"), in_memory=True, first_experiment_id=ids[1], options=options)
        stops.callback(subject.stop)
        yield Side("reference", reference.url), Side("subject", subject.url)
