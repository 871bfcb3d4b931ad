"""The README's example against the functions as Lambda runs them."""

import subprocess
import sys

from tests.support.processes import child_environment

from .conftest import REPOSITORY


def test_the_example_prints_what_the_readme_says(gateway, tmp_path):
    environment = child_environment(
        MLFLOW_TRACKING_URI=gateway,
        # The lines with links name this test's port.
        MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true",
    )
    command = [sys.executable, str(REPOSITORY / "examples/quickstart.py")]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    assert process.stdout == (REPOSITORY / "examples/quickstart.expected").read_text()
