"""Makes SQLite's ILIKE ignore the case of all letters.

In MLflow, the behavior of ILIKE depends on the database. PostgreSQL and MySQL ignore the case of
all letters, as our server does. SQLite, which stock MLflow uses in these tests, ignores the case of
ASCII letters only. A custom `lower` makes the two servers comparable.
"""

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def fold(text: str) -> str:
    """Folds the case of a text like our server does for comparisons. ASCII letters only match each
    other.
    """
    return text.lower() if text.isascii() else "".join(map(_fold, text))


def install() -> None:
    """Installs the function as `lower`, which SQLAlchemy uses for ILIKE, in all SQLite connections
    of this process.
    """
    event.listen(Engine, "connect", _connected)


def _connected(connection: Any, _: Any) -> None:
    connection.create_function("lower", 1, lambda value: fold(value) if isinstance(value, str) else value, deterministic=True)


def _fold(letter: str) -> str:
    if letter.isascii():
        return letter.lower()
    upper = letter.upper()
    lower = (upper if len(upper) == 1 else letter).lower()
    return letter if len(lower) != 1 or lower.isascii() else lower
