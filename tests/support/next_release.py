"""MLflow 3.18.0, next to the installed release."""

import subprocess
import sys
from pathlib import Path


def next_release() -> Path:
    """Returns a directory with MLflow 3.18.0 and none of its dependencies, which 3.17.2 has
    already. Installed once, into the build directory.
    """
    directory = Path(__file__).parents[2] / "target" / "mlflow-3.18.0"
    if not (directory / "ready").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory), "mlflow==3.18.0"]
        subprocess.run(command, check=True)
        (directory / "ready").touch()
    return directory
