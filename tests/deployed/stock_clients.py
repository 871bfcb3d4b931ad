"""Runs stock clients of any version in separate processes, which log and load a model."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support import warm
from tests.support.processes import child_environment

from .emulator import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/deploy"))
import advice  # noqa: E402

_PROGRAM = Path(__file__).parent / "clients/program.py"
_SECONDS = 900


def python_of(version: str) -> Path:
    """Returns the interpreter of the environment with this version of the client."""
    python = REPOSITORY / f".venv-client-{version}/bin/python"
    if not python.is_file():
        raise FileNotFoundError(f"{python} is missing: run `make clients`")
    return python


def printed_settings(said: str, version: str) -> dict[str, str]:
    """Returns the settings that `make deploy` prints for a client of this version."""
    settings = advice.of_files(version)
    line = " ".join(f"{name}={value}" for name, value in settings.items())
    assert not line or f"export {line}\n" in said, said
    return settings


def models_come_back(python: Path, version: str, settings: Mapping[str, str], size: int, directory: Path) -> None:
    """Logs a model with a long file, an empty one and one in Latin-1, and loads it in another
    process.
    """
    files = directory / "files"
    files.mkdir()
    (files / "long.bin").write_bytes(os.urandom(size))
    (files / "empty.py").write_bytes(b"")
    (files / "latin.txt").write_bytes("déjà vu\n".encode("latin-1"))
    logged = _run(python, settings, directory / "first", "log", str(files))
    assert logged["version"] == version
    assert logged["digests"].keys() == {"long", "empty", "latin"}
    loaded = _run(python, settings, directory / "second", "load", logged["uri"])
    assert loaded["digests"] == logged["digests"]


def _run(python: Path, settings: Mapping[str, str], home: Path, *arguments: str) -> dict:
    home.mkdir()
    place = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": ""}
    environment = {name: value for name, value in child_environment().items() if not name.startswith("AWS_")} | place | dict(settings)
    if python == Path(sys.executable):
        # The installed version has been imported already.
        process = warm.run([str(_PROGRAM), *arguments], environment, home, _SECONDS)
    else:
        process = subprocess.run(
            [str(python), str(_PROGRAM), *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=_SECONDS
        )
    assert process.returncode == 0, process.stderr[-6000:]
    return json.loads(process.stdout.splitlines()[-1])
