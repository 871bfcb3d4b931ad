"""What MLflow finds through the entry point group `mlflow.request_auth_provider`."""

import os

from mlflow.tracking.request_auth.abstract_request_auth_provider import RequestAuthProvider

from mlflow_serverless_auth.signer import SigV4

_NAME = "mlflow-serverless"
#: From this size on, in bytes, MLflow sends a file in parts, by presigned URLs, and not through API Gateway and Lambda, which take no more
#: than 6 MB of base64. By itself it would begin at 500 MB.
_LONGEST_IN_A_REQUEST = 4_500_000
_SETTING = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"
#: Clients before MLflow 3.15 send no parts at all unless it is set.
_SWITCH = "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"


def _lower_the_size_of_uploads_in_parts() -> None:
    """Unless the user has chosen it."""
    os.environ.setdefault(_SETTING, str(_LONGEST_IN_A_REQUEST))
    os.environ.setdefault(_SWITCH, "true")


class MlflowServerlessAuthProvider(RequestAuthProvider):
    """Chosen by `MLFLOW_TRACKING_AUTH=mlflow-serverless`. MLflow makes one when it starts."""

    def __init__(self) -> None:
        # One for all requests: it keeps the credentials it has found, and looks for none before the first request.
        self._auth = SigV4()
        # MLflow makes one of each provider that is installed, chosen or not.
        if os.environ.get("MLFLOW_TRACKING_AUTH") == _NAME:
            _lower_the_size_of_uploads_in_parts()

    def get_name(self) -> str:
        """The name that `MLFLOW_TRACKING_AUTH` has to give."""
        return _NAME

    def get_auth(self) -> SigV4:
        """The signer, which MLflow hands to `requests`; called for each request."""
        _lower_the_size_of_uploads_in_parts()
        return self._auth
