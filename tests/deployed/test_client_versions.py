"""Stock clients of each age log a model and load it, with what `make deploy` prints for them. It comes before test_deployed.py, which deletes the stack."""

from pathlib import Path

import pytest

from .conftest import Deployment
from .steps import administrator, token_of
from .stock_clients import models_come_back, printed_settings, python_of

#: The lists of what is installed for each: `make clients`.
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
    """By the package, which is all that is printed for it."""
    settings = deployment.caller.environment | {"MLFLOW_TRACKING_URI": deployment.signed, "MLFLOW_TRACKING_AUTH": "mlflow-serverless"}
    models_come_back(python_of(version), version, settings, _LONG, tmp_path)
