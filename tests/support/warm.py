"""Runs Python programs in processes that have already imported MLflow.

Importing MLflow takes 4 s of CPU time, and `mlflow server` does it twice. Therefore each test
process has one process that imports it (`multiprocessing`'s fork server), and each server and each
program of the stock client is forked from that process. A program has its own arguments,
environment, working directory, standard streams and `__main__`, as in a new interpreter.

Everything else is inherited from the fork server: the hash seed (order of sets of strings), NumPy's
random state, `sys.path` of the tests, locale and time zone. A program cannot start processes with
`multiprocessing`. Tests that need any of this use `subprocess` instead.
"""

import atexit
import functools
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.support import letters

#: Does not include `mlflow.server` or modules that import it, because it reads the environment when
#: it is imported.
_IMPORTED = [
    "mlflow",
    "mlflow.genai",
    "mlflow.store.db.utils",
    "mlflow.store.model_registry.sqlalchemy_store",
    "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.deployments",
    "mlflow.pyfunc",
    "fastapi",
    "flask",
    "graphene",
]


#: Serializes calls into `multiprocessing`. It polls all processes when it starts one, and two
#: concurrent polls of an ended process corrupt its exit code.
_ONE_AT_A_TIME = threading.Lock()


class WarmProcess:
    """A program in its own process group, with the methods of `subprocess.Popen` that the tests
    use.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        output: Path,
        errors: Path | None = None,
    ):
        """Starts `python <arguments>`. Standard output is appended to `output`, and standard error
        to `errors` or else to `output`.
        """
        # Absolute, because the program opens them in its own working directory.
        output, errors = output.absolute(), (errors or output).absolute()
        for file in {output, errors}:
            file.touch()
        started = (list(arguments), dict(environment), str(directory.absolute()), str(output), str(errors))
        with _ONE_AT_A_TIME:
            self._process: BaseProcess = _fork_server().Process(target=_begin, args=started, daemon=True)
            self._process.start()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None, "the process has been started"
        return pid

    def poll(self) -> int | None:
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def wait(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a program of the stock client", timeout)
            time.sleep(0.01)
        return code

    def kill(self) -> None:
        """Kills only the program itself, not the processes that it has started."""
        self._process.kill()


def run(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Runs `python <arguments>` to completion. The result contains its output as strings."""
    with tempfile.TemporaryDirectory() as place:
        said = [Path(place, name) for name in ("output", "errors")]
        process = WarmProcess(arguments, environment, directory, *said)
        try:
            code = process.wait(timeout)
            return subprocess.CompletedProcess(list(arguments), code, *(file.read_text() for file in said))
        finally:
            process.kill()


@functools.cache
def _fork_server() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    # The fork server starts without MLflow's variables. Telemetry is disabled because it starts a
    # thread, which forked processes would lack. MLFLOW_SERVERLESS_BIN, which is not MLflow's, stays,
    # because another thread may start that program at the same time.
    own = [name for name in os.environ if name.startswith(("MLFLOW_", "_MLFLOW_")) and name != "MLFLOW_SERVERLESS_BIN"]
    kept = {name: os.environ.pop(name) for name in own}
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["MLFLOW_DISABLE_TELEMETRY"]
        os.environ.update(kept)
    return context


def _begin(arguments: list[str], environment: dict[str, str], directory: str, output: str, errors: str) -> None:
    """Entry point of the forked process: sets up the environment and the streams, and runs the
    program.
    """
    assert "mlflow.server" not in sys.modules, "mlflow.server reads the environment when it is imported"
    os.setsid()
    os.chdir(directory)
    for descriptor, (name, mode) in enumerate([(os.devnull, os.O_RDONLY), (output, _APPEND), (errors, _APPEND)]):
        opened = os.open(name, mode, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    try:
        if arguments[:3] == ["-m", "mlflow", "server"]:
            _serve(arguments[2:])
        else:
            _run(arguments)
    finally:
        # Does what an interpreter does when it exits. Processes of the fork server would skip the
        # exit functions.
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def _run(arguments: list[str]) -> None:
    """Runs `python <arguments>` in this process."""
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    match arguments:
        case ["-c", code, *rest]:
            sys.argv, sys.path[:0] = ["-c", *rest], [""]
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(code, "<string>", "exec"), main.__dict__)
        case ["-m", module, *rest]:
            sys.argv, sys.path[:0] = [module, *rest], [""]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *rest]:
            sys.argv, sys.path[:0] = [script, *rest], [str(Path(script).parent)]
            runpy.run_path(script, run_name="__main__")
        case _:
            raise ValueError("no program in the arguments")


def _serve(arguments: list[str]) -> None:
    """Runs `mlflow server`, whose command reads the options, prepares the database and starts
    uvicorn, which serves.

    The command would start uvicorn in a new interpreter. Here, uvicorn runs in another fork, which
    is created before the command has done anything.
    """
    letters.install()
    reads, writes = os.pipe()
    serving = os.fork()
    if serving == 0:
        os.close(writes)
        with os.fdopen(reads) as order:
            text = order.read()
        if not text:
            os._exit(1)  # The command has ended without starting uvicorn.
        options, environment = json.loads(text)
        os.environ.update(environment)
        sys.argv = ["uvicorn", *options]
        runpy.run_module("uvicorn", run_name="__main__", alter_sys=True)
        return
    os.close(reads)

    import mlflow.cli
    import mlflow.server

    def start(command: list[str], *, extra_env: Mapping[str, str], **_: object) -> "_Serving":
        assert command[1:3] == ["-m", "uvicorn"], command
        with os.fdopen(writes, "w") as order:
            # Part of the settings are in the command's own environment.
            json.dump([command[3:], {**os.environ, **extra_env}], order)
        return _Serving(serving)

    mlflow.server._exec_cmd = start
    mlflow.cli.cli(arguments)


class _Serving:
    """Stands in for the uvicorn process, with the methods that MLflow's command uses."""

    def __init__(self, pid: int):
        self._pid = pid

    def poll(self) -> None:
        """Always returns `None`. The process is only known to have ended after `wait`."""

    def send_signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def wait(self) -> None:
        os.waitpid(self._pid, 0)
