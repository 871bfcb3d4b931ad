"""Tests stock clients of several versions, which log and load a model with the settings that `make
deploy` prints for them. These tests run before test_deployed.py, which deletes the stack.
"""

from pathlib import Path

import pytest

from .conftest import Deployment
from .steps import administrator, token_of
from .stock_clients import models_come_back, printed_settings, python_of

#: Versions with a list of packages, which `make clients` installs.
VERSIONS = sorted(path.stem for path in Path(__file__).parent.glob("clients/*.txt") if not path.stem.endswith(".alone"))
_LONG = 200_000_000


@pytest.fixture(scope="module")
def token(deployment: Deployment) -> str:
    administrator(deployment, "modeller")
    return token_of(deployment, "modeller")


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_user_logs_and_loads_a_model(deployment: Deployment, token: str, version: str, tmp_path: Path) -> None:
    settings = {"MLFLOW_TRACKING_URI": deployment.users, "MLFLOW_TRACKING_TOKEN": token} | printed_settings(deployment.said, version)
    models_come_back(python_of(version), version, settings, _LONG, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_with_credentials_logs_and_loads_a_model(deployment: Deployment, version: str, tmp_path: Path) -> None:
    """Checks clients that sign with the package, without further settings."""
    settings = deployment.caller.environment | {"MLFLOW_TRACKING_URI": deployment.signed, "MLFLOW_TRACKING_AUTH": "mlflow-serverless"}
    models_come_back(python_of(version), version, settings, _LONG, tmp_path)
