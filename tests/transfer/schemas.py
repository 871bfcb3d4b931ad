"""MLflow databases at the schemas of several releases, on SQLite, PostgreSQL and MariaDB."""

import json
from pathlib import Path
from typing import Any

import sqlalchemy

from tests.support.next_release import next_release
from tests.transfer.servers import Databases

#: The last migration of each release.
HEADS = {
    "2.0.1": "97727af70f4d",
    "2.9.2": "acf3f17fdcc7",
    "2.22.4": "0584bdc529eb",
    "3.0.1": "bda7b8c39065",
    "3.10.1": "1b5f0d9ad7c1",
    "3.13.0": "da6fb0208061",
    "3.17.2": "dc11669786a5",
    "3.18.0": "f4a9b2c7d1e6",
}
#: The release whose migrations the test environment has. Those of 3.18.0 need that release.
INSTALLED = "3.17.2"


def migrate(url: str, release: str) -> None:
    """Brings a database to the schema of a release, as `mlflow db upgrade` of that release does.
    Creates the tables of an empty database.
    """
    from alembic import command
    from mlflow.store.db import utils
    from mlflow.store.tracking.dbmodels.initial_models import Base as InitialBase

    engine = sqlalchemy.create_engine(url)
    if not sqlalchemy.inspect(engine).get_table_names():
        # The very first tables are not made by a migration.
        InitialBase.metadata.create_all(engine)
    migrations = str(next_release() / "mlflow/store/db_migrations") if release == "3.18.0" else None
    config = utils._get_alembic_config(url.replace("%", "%%"), migrations)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, HEADS[release])
    engine.dispose()


class SchemaTemplates:
    """Databases with the schema of each release and without rows, which are copied for tests. Each
    is made from that of the release before it, so that no migration runs twice.
    """

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._templates: dict[str, str] = {}

    def create(self, release: str) -> str:
        """Creates a database with the schema of a release, and returns its URL."""
        return self._databases.copy(self._template(release))

    def create_empty(self) -> str:
        """Creates a database without tables, and returns its URL."""
        return self._databases.create()

    def copy(self, url: str) -> str:
        """Copies a database, and returns the URL of the copy."""
        return self._databases.copy(url)

    def _template(self, release: str) -> str:
        if release not in self._templates:
            earlier = list(HEADS)[: list(HEADS).index(release)]
            url = self.create(earlier[-1]) if earlier else self._databases.create()
            migrate(url, release)
            self._templates[release] = url
        return self._templates[release]


def _stored(value: Any, column: sqlalchemy.Column) -> Any:
    """Returns a value for a column. MariaDB stores JSON as text."""
    is_json = isinstance(value, list | dict) and not isinstance(column.type, sqlalchemy.JSON)
    return json.dumps(value) if is_json else value


def fill(url: str, rows: dict[str, list[dict]]) -> None:
    """Inserts rows into the tables that the schema has, with the columns that it has."""
    engine = sqlalchemy.create_engine(url)
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    with engine.begin() as connection:
        if engine.dialect.name == "mysql":
            # Otherwise the id 0 of the default experiment is replaced by the next number.
            connection.execute(sqlalchemy.text("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')"))
        for name, entries in rows.items():
            table = metadata.tables.get(name)
            if table is None:
                continue
            for entry in entries:
                known = {column: _stored(value, table.c[column]) for column, value in entry.items() if column in table.c}
                connection.execute(table.insert().values(known))
    engine.dispose()
