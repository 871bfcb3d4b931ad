"""Python programs that begin where MLflow has been imported already: as copies of one process that has done so.

Importing MLflow takes a core four seconds, and `mlflow server` does it twice. One process of each process of the tests imports it
(`multiprocessing`'s fork server), and each server or program of the stock client is a copy of that process. A program sees its own arguments,
environment, working directory, standard streams and `__main__`, as in a new interpreter.

Other things are as in the fork server: the order of sets of texts, NumPy's random numbers, `sys.path` of the tests, locale and time zone. And a
program can start no process by `multiprocessing`. Programs of which a test wants one of these are started by `subprocess`.
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

#: Not `mlflow.server`, nor what imports it: it reads the environment while it is imported.
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


#: `multiprocessing` looks at all processes when it starts one, and two looks at one that has ended mix up how it ended.
_ONE_AT_A_TIME = threading.Lock()


class WarmProcess:
    """A program in a process group of its own. It has what the tests use of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        output: Path,
        errors: Path | None = None,
    ):
        """Start `python <arguments>`. What it prints is added to `output`, and its errors to `errors`, or there, too."""
        # The program opens them in its own directory.
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
        assert pid is not None, "it was started"
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
        """The program alone, without what it has started."""
        self._process.kill()


def run(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run `python <arguments>` to its end; what it has printed is in the result, as texts."""
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
    # It begins in an environment that steers nothing of MLflow; without telemetry, it starts no thread, which a copy would not have.
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("MLFLOW_", "_MLFLOW_"))}
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["MLFLOW_DISABLE_TELEMETRY"]
        os.environ.update(kept)
    return context


def _begin(arguments: list[str], environment: dict[str, str], directory: str, output: str, errors: str) -> None:
    """What the copy does first: become the program."""
    assert "mlflow.server" not in sys.modules, "it reads the environment while it is imported"
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
        # As an interpreter does at its end; the fork server's copies leave out the second of them.
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def _run(arguments: list[str]) -> None:
    """`python <arguments>`, within this process."""
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
            raise ValueError("there is no program")


def _serve(arguments: list[str]) -> None:
    """`mlflow server`: its command reads the options and prepares the database, and starts uvicorn, which serves.

    The command starts another interpreter for uvicorn. Here that is another copy, made before the command has done anything.
    """
    letters.install()
    reads, writes = os.pipe()
    serving = os.fork()
    if serving == 0:
        os.close(writes)
        with os.fdopen(reads) as order:
            text = order.read()
        if not text:
            os._exit(1)  # The command has ended before it started anything.
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
            # The command says a part of it in its own environment.
            json.dump([command[3:], {**os.environ, **extra_env}], order)
        return _Serving(serving)

    mlflow.server._exec_cmd = start
    mlflow.cli.cli(arguments)


class _Serving:
    """uvicorn, as far as MLflow's command looks at it."""

    def __init__(self, pid: int):
        self._pid = pid

    def poll(self) -> None:
        """It is waited for, so it is known to have ended only after that."""

    def send_signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def wait(self) -> None:
        os.waitpid(self._pid, 0)
