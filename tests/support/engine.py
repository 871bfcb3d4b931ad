"""The embedded engine in a separate process, over HTTP."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ChildProcess, child_environment, wait_until
from tests.support.servers import binary


@dataclass(frozen=True)
class Engine:
    """A running engine with its URL, and the credentials that it accepts."""

    process: ChildProcess
    url: str
    access_key: str
    secret: str


def start_engine(directory: Path, data: Path, *options: str) -> Engine:
    """Starts the engine on the data in `data`, with its log in `directory`. The caller has to stop
    it.
    """
    command = [str(binary()), "engine", "--port", "0", "--data", str(data), *options]
    process = ChildProcess(command, child_environment(), directory, directory / "engine.log")
    # The engine prints this after it has created the table.
    said = re.compile(r"(http://\S+)\nAWS_ACCESS_KEY_ID=(\w+)\nAWS_SECRET_ACCESS_KEY=(\w+)\n")
    try:
        found = wait_until(lambda: said.search(process.log_text()), "URL and access key of the engine", process)
    except BaseException:
        process.kill()
        raise
    return Engine(process, *found.groups())
