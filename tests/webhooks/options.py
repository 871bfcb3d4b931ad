"""Options with which both servers send webhooks to receivers on this machine."""

from pathlib import Path

#: Stock MLflow refuses such receivers unless these variables are set.
STOCK_ENVIRONMENT = {
    "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "https,http",
    "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
    "MLFLOW_WEBHOOK_REQUEST_MAX_RETRIES": "0",
}


def subject_options(directory: Path) -> list[str]:
    return ["--webhooks-allow-http", "--webhooks-allow-private-addresses", "--secrets-key", str(directory / "secrets.key")]
