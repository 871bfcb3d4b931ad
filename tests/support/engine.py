"""The embedded engine as a process of its own, over HTTP."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ChildProcess, child_environment, wait_until
from tests.support.servers import binary


@dataclass(frozen=True)
class Engine:
    """The engine over HTTP, and the access key that it asks for."""

    process: ChildProcess
    url: str
    access_key: str
    secret: str


def start_engine(directory: Path, data: Path, *options: str) -> Engine:
    """Start the engine on the data of a folder, with a log in a directory; whoever starts it stops it."""
    command = [str(binary()), "engine", "--port", "0", "--data", str(data), *options]
    process = ChildProcess(command, child_environment(), directory, directory / "engine.log")
    # Printed when the table is made.
    said = re.compile(r"(http://\S+)\nAWS_ACCESS_KEY_ID=(\w+)\nAWS_SECRET_ACCESS_KEY=(\w+)\n")
    try:
        found = wait_until(lambda: said.search(process.log_text()), "URL and access key of the engine", process)
    except BaseException:
        process.kill()
        raise
    return Engine(process, *found.groups())
