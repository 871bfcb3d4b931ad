"""The SQLite file that is written."""

import hashlib
import json
import logging
import math
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy
from mlflow.store.db import utils
from mlflow.store.tracking.dbmodels.models import Base

from mlflow_serverless_dump.report import UsageError

#: Table that records which entities are complete. MLflow and the import ignore it.
_PROGRESS = sqlalchemy.Table(
    "mlflow_serverless_dump",
    sqlalchemy.MetaData(),
    sqlalchemy.Column("kind", sqlalchemy.String, primary_key=True),
    sqlalchemy.Column("id", sqlalchemy.String, primary_key=True),
    sqlalchemy.Column("fingerprint", sqlalchemy.String, nullable=False),
)
_LARGEST = 1.7976931348623157e308


class Database:
    """A SQLite database of MLflow's schema, as a context manager. All writes between two calls of
    `commit` are one transaction; uncommitted writes are discarded.
    """

    def __init__(self, file: str, source: str) -> None:
        """Creates the file, or opens one that was created from the same source."""
        path = Path(file).absolute()
        if not path.parent.is_dir():
            raise UsageError(f"the directory {path.parent} does not exist")
        is_new = not path.exists() or path.stat().st_size == 0
        self._engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        try:
            if is_new:
                self._create(source)
            else:
                self._check(path, source)
        except sqlalchemy.exc.DatabaseError as error:
            raise UsageError(f"{path}: {error.orig}") from error
        self._connection = self._engine.connect()
        # A killed process loses no committed transaction. After a crash of the machine, the dump
        # has to be started again.
        self._connection.exec_driver_sql("PRAGMA synchronous = OFF")
        self._connection.commit()

    def _create(self, source: str) -> None:
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        utils._initialize_tables(self._engine)
        with self._engine.begin() as connection:
            _PROGRESS.create(connection)
            connection.execute(_PROGRESS.insert().values(kind="source", id="", fingerprint=source))

    def _check(self, path: Path, source: str) -> None:
        with self._engine.connect() as connection:
            if not sqlalchemy.inspect(connection).has_table(_PROGRESS.name):
                raise UsageError(f"{path} exists and is not a dump of this command: choose another file")
            earlier = connection.execute(sqlalchemy.select(_PROGRESS.c.fingerprint).where(_PROGRESS.c.kind == "source")).scalar()
        if earlier != source:
            raise UsageError(f"{path} is a dump of {earlier}: choose another file")
        if utils._get_schema_version(self._engine) != utils._get_latest_schema_revision():
            raise UsageError(f"{path} was written with another version of MLflow: choose another file")

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()
        self._engine.dispose()

    def insert(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Inserts rows. Of rows with the same key, the first is kept."""
        rows = list(rows)
        if rows:
            self._connection.execute(_table(table).insert().prefix_with("OR IGNORE"), rows)

    def replace(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Inserts rows, and replaces existing rows with the same key."""
        rows = list(rows)
        if rows:
            self._connection.execute(_table(table).insert().prefix_with("OR REPLACE"), rows)

    def delete(self, table: str, **values: Any) -> None:
        """Deletes the rows with these values."""
        columns = _table(table).c
        self._connection.execute(_table(table).delete().where(*(columns[name] == value for name, value in values.items())))

    def delete_in(self, table: str, column: str, query: sqlalchemy.Select) -> None:
        """Deletes the rows whose column has one of the values that a query returns."""
        self._connection.execute(_table(table).delete().where(_table(table).c[column].in_(query)))

    def value(self, query: sqlalchemy.Select) -> Any:
        """Returns the first value of a query, or `None`."""
        return self._connection.execute(query).scalar()

    def times_of_runs(self, experiment: int) -> tuple[int | None, int | None]:
        """Returns the first start and the last end of an experiment's runs, in ms."""
        runs = _table("runs").c
        query = sqlalchemy.select(sqlalchemy.func.min(runs.start_time), sqlalchemy.func.max(sqlalchemy.func.coalesce(runs.end_time, runs.start_time)))
        return tuple(self._connection.execute(query.where(runs.experiment_id == experiment)).one())

    def is_complete(self, kind: str, id_: str, fingerprint: str) -> bool:
        """Returns whether the file contains the entity in its current state in the source."""
        query = sqlalchemy.select(_PROGRESS.c.fingerprint).where(_PROGRESS.c.kind == kind, _PROGRESS.c.id == id_)
        return self.value(query) == fingerprint

    def complete(self, kind: str, id_: str, fingerprint: str) -> None:
        """Records that an entity is complete, and commits the transaction."""
        self._connection.execute(_PROGRESS.insert().prefix_with("OR REPLACE").values(kind=kind, id=id_, fingerprint=fingerprint))
        self.commit()

    def commit(self) -> None:
        """Commits the transaction."""
        self._connection.commit()

    def rollback(self) -> None:
        """Discards all writes since the last commit."""
        self._connection.rollback()


def _table(name: str) -> sqlalchemy.Table:
    return Base.metadata.tables[name]


def fingerprint(value: Any) -> str:
    """Returns a hash of what the source has returned for an entity."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()


def metric_value(value: float) -> tuple[float, bool]:
    """Returns a metric's value as MLflow stores it, and whether it is NaN."""
    if math.isnan(value):
        return 0.0, True
    return max(-_LARGEST, min(_LARGEST, value)), False
