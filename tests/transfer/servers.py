"""PostgreSQL and MariaDB servers on this machine, for tests."""

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import sqlalchemy

_PASSWORD = "s3cret/with:signs"
_QUOTED = "s3cret%2Fwith%3Asigns"


#: Databases are on a file system in memory, if there is one: MLflow's migrations commit each step.
FAST_DIRECTORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _as_user(name: str, command: list[str]) -> list[str]:
    """Returns a command that runs as this user, because neither server runs as root."""
    return ["runuser", "-u", name, "--", *command] if os.geteuid() == 0 else command


def _wait_for(url: str, process: subprocess.Popen) -> None:
    engine = sqlalchemy.create_engine(url)
    deadline = time.monotonic() + 60
    while True:
        try:
            engine.connect().close()
            break
        except sqlalchemy.exc.SQLAlchemyError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    engine.dispose()


class Databases(Protocol):
    """Databases on one server."""

    def create(self) -> str:
        """Creates an empty database, and returns its URL for SQLAlchemy."""

    def copy(self, url: str) -> str:
        """Copies a database that nobody is connected to, and returns the URL of the copy."""


class SqliteDatabases:
    """SQLite files in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0

    def create(self) -> str:
        self._count += 1
        return f"sqlite:///{self._directory}/mlflow{self._count}.db"

    def copy(self, url: str) -> str:
        target = self.create()
        shutil.copyfile(url.removeprefix("sqlite:///"), target.removeprefix("sqlite:///"))
        return target


class _ServerDatabases:
    """Databases on a server."""

    def __init__(self, root_url: str, url: str) -> None:
        self._root = sqlalchemy.create_engine(root_url, isolation_level="AUTOCOMMIT")
        self._url = url
        self._count = 0

    def _create(self, options: str) -> str:
        self._count += 1
        name = f"mlflow{self._count}"
        with self._root.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} {options}"))
        return f"{self._url}/{name}"


class _PostgresDatabases(_ServerDatabases):
    def create(self) -> str:
        return self._create("")

    def copy(self, url: str) -> str:
        return self._create(f"TEMPLATE {url.rpartition('/')[2]}")


class _MariaDatabases(_ServerDatabases):
    def create(self) -> str:
        return self._create("CHARACTER SET utf8mb4")

    def copy(self, url: str) -> str:
        target = self.create()
        port = target.rpartition("/")[0].rpartition(":")[2]
        options = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", f"--port={port}", "--user=mlflow", f"--password={_PASSWORD}"]
        dump = subprocess.run(["mariadb-dump", *options, url.rpartition("/")[2]], check=True, capture_output=True)
        subprocess.run(["mariadb", *options, target.rpartition("/")[2]], check=True, input=dump.stdout)
        return target


@contextlib.contextmanager
def postgres(directory: Path) -> Iterator[Databases]:
    """Runs PostgreSQL with its data in a directory. Data is not synced to the disk."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise FileNotFoundError("PostgreSQL is missing: install Debian's package postgresql")
    binaries = Path(found[-1])
    directory.chmod(0o777)
    data, password, port = directory / "postgres", directory / "password", _port()
    password.write_text(_PASSWORD)
    password.chmod(0o644)
    init = [str(binaries / "initdb"), "-D", str(data), "-U", "mlflow", "--pwfile", str(password), "--auth", "scram-sha-256", "-E", "UTF8", "--no-sync"]
    subprocess.run(_as_user("postgres", init), check=True, capture_output=True, cwd="/")
    options = ["-c", "fsync=off", "-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(_as_user("postgres", [str(binaries / "postgres"), "-D", str(data), *options]), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        url = f"postgresql+psycopg2://mlflow:{_QUOTED}@127.0.0.1:{port}"
        _wait_for(f"{url}/postgres", server)
        yield _PostgresDatabases(f"{url}/postgres", url)
    finally:
        # Nothing of the data is needed any more.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@contextlib.contextmanager
def mariadb(directory: Path) -> Iterator[Databases]:
    """Runs MariaDB with its data in a directory."""
    if shutil.which("mariadb-install-db") is None:
        raise FileNotFoundError("MariaDB is missing: install Debian's package mariadb-server")
    directory.chmod(0o777)
    data, port = directory / "mariadb", _port()
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(data, "mysql", "mysql")
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(_as_user("mysql", install), check=True, capture_output=True, cwd="/")
    init = directory / "init.sql"
    init.write_text(f"CREATE USER 'mlflow'@'%' IDENTIFIED BY '{_PASSWORD}';\nGRANT ALL ON *.* TO 'mlflow'@'%';\n")
    init.chmod(0o644)
    options = [f"--datadir={data}", f"--socket={directory}/mariadb.sock", f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve", f"--init-file={init}", "--innodb-flush-log-at-trx-commit=0"]
    server = subprocess.Popen(_as_user("mysql", ["/usr/sbin/mariadbd", "--no-defaults", *options]), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        url = f"mysql+pymysql://mlflow:{_QUOTED}@127.0.0.1:{port}"
        _wait_for(f"{url}/mysql", server)
        yield _MariaDatabases(f"{url}/mysql", url)
    finally:
        # Nothing of the data is needed any more.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
