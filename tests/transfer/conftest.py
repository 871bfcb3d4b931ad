"""Fixtures of the tests that import and export."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transfer import servers
from tests.transfer.schemas import SchemaTemplates

#: Kinds of databases. All tests of a kind run in one process, because its server starts once.
KINDS = [pytest.param(kind, marks=pytest.mark.xdist_group(f"transfer-{kind}")) for kind in ("sqlite", "postgres", "mariadb")]


@pytest.fixture(scope="session")
def sqlite() -> Iterator[SchemaTemplates]:
    with tempfile.TemporaryDirectory(dir=servers.FAST_DIRECTORY) as directory:
        yield SchemaTemplates(servers.SqliteDatabases(Path(directory)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[SchemaTemplates]:
    # Directories of pytest are not accessible to the server's user.
    with tempfile.TemporaryDirectory(dir=servers.FAST_DIRECTORY) as directory, servers.postgres(Path(directory)) as databases:
        yield SchemaTemplates(databases)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[SchemaTemplates]:
    with tempfile.TemporaryDirectory(dir=servers.FAST_DIRECTORY) as directory, servers.mariadb(Path(directory)) as databases:
        yield SchemaTemplates(databases)
