"""What MLflow finds through the entry point group `mlflow.request_auth_provider`."""

from mlflow.tracking.request_auth.abstract_request_auth_provider import RequestAuthProvider

from mlflow_serverless_auth.signer import SigV4


class MlflowServerlessAuthProvider(RequestAuthProvider):
    """Chosen by `MLFLOW_TRACKING_AUTH=mlflow-serverless`. MLflow makes one when it starts."""

    def __init__(self) -> None:
        # One for all requests: it keeps the credentials it has found, and looks for none before the first request.
        self._auth = SigV4()

    def get_name(self) -> str:
        """The name that `MLFLOW_TRACKING_AUTH` has to give."""
        return "mlflow-serverless"

    def get_auth(self) -> SigV4:
        """The signer, which MLflow hands to `requests`; called for each request."""
        return self._auth
