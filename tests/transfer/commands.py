"""The commands under test."""

import sqlite3
import subprocess
from pathlib import Path

from tests.support.servers import binary


def run(*arguments: str | Path, fails: bool = False) -> str:
    """Runs a command of the program, and returns its output: of an expected failure, what it wrote to
    standard error.
    """
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def contents(file: Path) -> dict[str, list[tuple]]:
    """Returns the rows of all tables of a SQLite database, sorted."""
    database = sqlite3.connect(file)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: sorted(database.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in names}
