"""Servers that are shared by all tests of a session, and fixtures that start new ones."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.pair import FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT
from tests.support.http import Side
from tests.support.s3 import LocalS3, local_s3
from tests.support.servers import ServerlessMlflow, StockMlflow, start_subject

Server = StockMlflow | ServerlessMlflow


# Must precede the hook of pytest-xdist with the same name, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Makes one process run all tests of the local Lambda, so that its functions start
    only once.
    """
    for item in items:
        if "local_lambda" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("lambda"))


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """Yields stock MLflow, which is shared. Each test uses its own experiments."""
    server = StockMlflow(tmp_path_factory.mktemp("reference"), FIRST_EXPERIMENT_OF_REFERENCE)
    yield Side("reference", server.url)
    server.stop()


@pytest.fixture(scope="session")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """Yields the server under test, which is shared like the reference."""
    directory = tmp_path_factory.mktemp("subject")
    server = start_subject(directory, in_memory=True, first_experiment_id=FIRST_EXPERIMENT_OF_SUBJECT)
    yield Side("subject", server.url)
    server.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[LocalS3]:
    """Yields S3 on this machine. Each test creates its own buckets."""
    with local_s3() as s3:
        yield s3


@pytest.fixture
def empty_reference(tmp_path) -> Iterator[Side]:
    """Yields stock MLflow with an empty store for one test."""
    server = StockMlflow(tmp_path / "reference")
    yield Side("reference", server.url)
    server.stop()


@pytest.fixture
def empty_subject(tmp_path) -> Iterator[Side]:
    """Yields the server under test with an empty store for one test."""
    server = start_subject(tmp_path / "subject", in_memory=True)
    yield Side("subject", server.url)
    server.stop()


@pytest.fixture
def start_server(tmp_path) -> Iterator[Callable[[], Server]]:
    """Yields a function that starts the server under test in this test's directory. Each call
    continues with the same data.
    """
    started: list[Server] = []

    def start() -> Server:
        started.append(start_subject(tmp_path / "server"))
        return started[-1]

    yield start
    for server in started:
        server.kill()
