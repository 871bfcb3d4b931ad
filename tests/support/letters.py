"""SQLite that knows the case of all letters.

MLflow's ILIKE is that of its database. PostgreSQL and MySQL ignore the case of all letters, as our server does. SQLite, on which
stock MLflow runs in these tests, knows only those of ASCII. With a `lower` of its own it can be compared.
"""

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def fold(text: str) -> str:
    """A text in the case in which our server compares it. Letters of ASCII match only each other."""
    return text.lower() if text.isascii() else "".join(map(_fold, text))


def install() -> None:
    """All connections of this process to SQLite get it as `lower`, by which SQLAlchemy makes ILIKE."""
    event.listen(Engine, "connect", _connected)


def _connected(connection: Any, _: Any) -> None:
    connection.create_function("lower", 1, lambda value: fold(value) if isinstance(value, str) else value, deterministic=True)


def _fold(letter: str) -> str:
    if letter.isascii():
        return letter.lower()
    upper = letter.upper()
    lower = (upper if len(upper) == 1 else letter).lower()
    return letter if len(lower) != 1 or lower.isascii() else lower
