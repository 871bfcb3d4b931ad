"""The two kinds of servers that the tests use. Both have `url`, `stop()` and `kill()`.

Every server has its own directory for data and log, and its parent as the working directory, so
that relative locations refer to the same place on both sides. A second server that is started on
the same directory continues with the same data. This is how the durability tests restart a killed
server.
"""

import atexit
import functools
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import requests

from tests.support.processes import ChildProcess, child_environment, wait_until
from tests.support.warm import run

#: Both sides have the same root, so that artifact locations can be compared. Nothing is ever stored
#: there. Uploads to `mlflow-artifacts:/` go to a directory of each side.
ARTIFACT_ROOT = "s3://bucket/root"

#: Timeout for the start. Importing MLflow takes seconds, and a minute on a busy machine.
_PATIENCE_SECONDS = 180

_REPOSITORY = Path(__file__).resolve().parents[2]


class StockMlflow:
    """`mlflow server` with one worker and an SQLite file."""

    #: Whether the server is started from a process that has imported the installed MLflow.
    _IS_WARM = True

    def __init__(
        self,
        directory: Path,
        first_experiment_id: int | None = None,
        artifact_options: Sequence[str] | None = None,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ):
        directory.mkdir(parents=True, exist_ok=True)
        self._database = stock_database(directory)
        if not self._database.exists():
            shutil.copyfile(_empty_database(), self._database)
        command = ["-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1", "--port", "0"]
        command += ["--backend-store-uri", f"sqlite:///{self._database}"]
        served = ("--default-artifact-root", ARTIFACT_ROOT, "--artifacts-destination", str(directory / "artifacts"))
        command += [*(served if artifact_options is None else artifact_options), *options]
        # The default closes connections after 5 s of inactivity, sometimes just when the next
        # request is on its way.
        command += ["--uvicorn-opts", "--timeout-keep-alive 600 --no-access-log"]
        command = command if self._IS_WARM else [sys.executable, *command]
        # The job runner starts eight more processes, which these tests do not need.
        environment = child_environment(MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", **environment or {})
        self._process, self.url = _started(command, environment, directory, r"running on (http://127\.0\.0\.1:\d+)", warm=self._IS_WARM)
        if first_experiment_id is not None:
            self._start_experiment_ids_at(first_experiment_id)

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        self._process.kill()

    def _start_experiment_ids_at(self, first: int) -> None:
        """Inserts a deleted experiment, so that the next ids are long numbers.

        A long id cannot be confused with any other number in a message, so the comparison can
        replace it with a name. Different ids on both sides reveal a missing replacement.
        """
        now = time.time_ns() // 1_000_000
        with sqlite3.connect(self._database, timeout=30) as database:
            database.execute(
                "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage,"
                " creation_time, last_update_time) VALUES (?, 'the one before the first', '', 'deleted', ?, ?)",
                (first - 1, now, now),
            )


class NextStockMlflow(StockMlflow):
    """`mlflow server` of the next release, which is in a directory of its own. Its AI gateway is
    switched off, because this server has none.
    """

    _IS_WARM = False

    def __init__(
        self,
        directory: Path,
        release: Path,
        first_experiment_id: int | None = None,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ):
        environment = {"MLFLOW_ENABLE_AI_GATEWAY": "false", **(environment or {})}
        paths = [environment.get("PYTHONPATH", str(release)), str(_REPOSITORY / "tests/support/startup"), str(_REPOSITORY)]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        directory.mkdir(parents=True, exist_ok=True)
        if not stock_database(directory).exists():
            shutil.copyfile(_empty_database_of(release, environment), stock_database(directory))
        super().__init__(directory, first_experiment_id, options=options, environment=environment)


class ServerlessMlflow:
    """This project's `mlflow-serverless serve`, with its data in a directory or in memory."""

    def __init__(
        self,
        directory: Path,
        in_memory: bool = False,
        options: Sequence[str] = (),
        program: Path | None = None,
        artifact_root: str = ARTIFACT_ROOT,
        environment: Mapping[str, str] | None = None,
    ):
        directory.mkdir(parents=True, exist_ok=True)
        data = ["--memory"] if in_memory else ["--data", str(directory / "data")]
        if "--dynamodb-endpoint" in options:
            data = []
        if artifact_root == ARTIFACT_ROOT:
            options = [*options, "--artifacts-destination", str(directory / "data/artifacts")]
        command = [str(program or binary()), "serve", "--host", "127.0.0.1", "--port", "0", *data]
        command += ["--artifact-root", artifact_root, *options]
        self._process, self.url = _started(
            command, child_environment(**environment or {}), directory, r"(http://127\.0\.0\.1:\d+)"
        )

    @property
    def process(self) -> ChildProcess:
        """Returns the process, for checks of its resources."""
        return self._process

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        self._process.kill()


def _started(
    command: list[str], environment: Mapping[str, str], directory: Path, announcement: str, warm: bool = False
) -> tuple[ChildProcess, str]:
    """Starts a server on a free port. Returns the process and the URL that it has printed, once it
    responds.
    """
    process = ChildProcess(command, environment, directory.parent, directory / f"server-{time.time_ns()}.log", warm)
    try:
        found = wait_until(lambda: re.search(announcement, process.log_text()), "URL in the log", process, _PATIENCE_SECONDS)
        wait_until(lambda: answers(found[1]), "answer to /health", process, _PATIENCE_SECONDS)
    except BaseException:
        process.kill()
        raise
    return process, found[1]


def stock_database(directory: Path) -> Path:
    """Returns the path of stock MLflow's database file in a directory."""
    return directory / "mlflow.db"


@functools.cache
def _empty_database() -> Path:
    """Creates a database of `mlflow server` with tables and without rows, once per process, and
    returns its path. Servers start with a copy, because each of the forty migrations takes as long
    as a test.
    """
    directory = Path(tempfile.mkdtemp(prefix="empty-stock-mlflow-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    file = directory / "mlflow.db"
    made = run(["-c", _MAKE_TABLES, f"sqlite:///{file}"], child_environment(), directory)
    if made.returncode != 0:
        raise RuntimeError(made.stderr)
    return file


def _empty_database_of(release: Path, environment: Mapping[str, str]) -> Path:
    """Creates a database of another release with tables and without rows, next to the release,
    unless there is one already. Returns its path.
    """
    file = release / "empty.db"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=release) as directory:
            made = Path(directory, file.name)
            command = [sys.executable, "-c", _MAKE_TABLES, f"sqlite:///{made}"]
            subprocess.run(command, env=child_environment(**environment), cwd=directory, check=True, capture_output=True)
            # Another process may create it at the same time, with the same content.
            made.replace(file)
    return file


_MAKE_TABLES = """
import sys
from mlflow.store.db import utils
utils._initialize_tables(utils.create_sqlalchemy_engine_with_retry(sys.argv[1]))
"""


def binary() -> Path:
    """Returns the path of the program under test: MLFLOW_SERVERLESS_BIN, or the debug build of this
    repository.
    """
    path = Path(os.environ.get("MLFLOW_SERVERLESS_BIN", _REPOSITORY / "target/debug/mlflow-serverless"))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: build it, or point MLFLOW_SERVERLESS_BIN at the binary")
    return path


def subject_is_stock_mlflow() -> bool:
    """Returns whether COMPARE_SUBJECT=mlflow replaces the server under test with a second stock
    server, which tests the tests.
    """
    choice = os.environ.get("COMPARE_SUBJECT", "serverless")
    if choice not in ("serverless", "mlflow"):
        raise ValueError(f"COMPARE_SUBJECT is {choice!r}, expected 'serverless' or 'mlflow'")
    return choice == "mlflow"


def start_subject(
    directory: Path,
    in_memory: bool = False,
    first_experiment_id: int | None = None,
    options: Sequence[str] = (),
) -> StockMlflow | ServerlessMlflow:
    """Starts the server under test. `options` are ignored if it is stock MLflow."""
    if subject_is_stock_mlflow():
        return StockMlflow(directory, first_experiment_id)
    return ServerlessMlflow(directory, in_memory, options)


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=5).status_code == 200
    except requests.RequestException:
        return False
