"""MLflow 3.18.0, next to the installed release."""

import subprocess
import sys
from pathlib import Path


def next_release() -> Path:
    """Returns a directory with MLflow 3.18.0 and none of its dependencies, which 3.17.2 has
    already. Installed once, into the build directory.
    """
    return _installed("mlflow", "3.18.0")


def form_reader() -> Path:
    """Returns a directory with the package that the server of MLflow 3.18.0 needs for uploads of
    skills, but does not depend on.
    """
    return _installed("python-multipart", "0.0.34")


def _installed(package: str, version: str) -> Path:
    directory = Path(__file__).parents[2] / "target" / f"{package}-{version}"
    if not (directory / "ready").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory), f"{package}=={version}"]
        subprocess.run(command, check=True)
        (directory / "ready").touch()
    return directory
