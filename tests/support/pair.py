"""A pair of servers, stock MLflow and the server under test, for programs that are started by hand.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.http import Side
from tests.support.servers import StockMlflow, start_subject

#: Long numbers, different on both sides. StockMlflow has the reason.
FIRST_EXPERIMENT_OF_REFERENCE = 710_000_000
FIRST_EXPERIMENT_OF_SUBJECT = 820_000_000


@contextmanager
def pair(plain_ids: bool = False, options: Sequence[str] = ()) -> Iterator[tuple[Side, Side]]:
    """Yields both servers with empty stores. With `plain_ids`, experiments are numbered from 1.
    `options` are for the server under test.
    """
    ids = (None, None) if plain_ids else (FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT)
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stops:
        reference = StockMlflow(Path(directory, "reference"), ids[0])
        stops.callback(reference.stop)
        subject = start_subject(Path(directory, "subject"), in_memory=True, first_experiment_id=ids[1], options=options)
        stops.callback(subject.stop)
        yield Side("reference", reference.url), Side("subject", subject.url)
