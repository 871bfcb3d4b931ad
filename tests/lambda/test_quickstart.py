"""Tests the README's example with the functions in a local Lambda."""

from urllib.parse import urlsplit

import pytest
from mlflow import MlflowClient

from tests.support import warm
from tests.support.processes import child_environment
from tests.support.servers import ARTIFACT_ROOT

from .conftest import REPOSITORY, LocalLambda


#: tests/deployed runs the example in a stack, and tests/clients with these functions.
@pytest.mark.slow
def test_the_example_prints_what_the_readme_says(local_lambda: LocalLambda, tmp_path):
    gateway = local_lambda.gateway
    # Artifacts pass through the server, which is the default of the stack.
    MlflowClient(gateway).create_experiment("quickstart", "mlflow-artifacts:/quickstart")
    environment = child_environment(
        MLFLOW_TRACKING_URI=gateway,
        # Suppresses the lines with links, which contain this test's port.
        MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="true",
    )
    process = warm.run([str(REPOSITORY / "examples/quickstart.py")], environment, tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout == (REPOSITORY / "examples/quickstart.expected").read_text()
    kept = [key for key in local_lambda.bucket.keys() if key.endswith("/notes.txt")]
    assert len(kept) == 1 and kept[0].startswith(f"{urlsplit(ARTIFACT_ROOT).path[1:]}/quickstart/")
