"""The provider that MLflow loads through the entry point group `mlflow.request_auth_provider`."""

import os

from mlflow.tracking.request_auth.abstract_request_auth_provider import RequestAuthProvider

from mlflow_serverless_auth.auth import ServerlessAuth

_NAME = "mlflow-serverless"
#: Minimum size in bytes of files that MLflow uploads in parts with presigned URLs, instead of
#: through API Gateway and Lambda. Lambda limits a request to 6 MB, and bodies are encoded in
#: base64. MLflow's own default is 500 MB.
_LONGEST_IN_A_REQUEST = 4_500_000
_SETTING = "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"
#: Variable that enables multipart uploads in clients before MLflow 3.15.
_SWITCH = "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"


def _lower_the_size_of_uploads_in_parts() -> None:
    """Enables multipart uploads from a smaller size on, unless the user has set these variables."""
    os.environ.setdefault(_SETTING, str(_LONGEST_IN_A_REQUEST))
    os.environ.setdefault(_SWITCH, "true")


class MlflowServerlessAuthProvider(RequestAuthProvider):
    """The provider for `MLFLOW_TRACKING_AUTH=mlflow-serverless`. MLflow creates it at startup."""

    def __init__(self) -> None:
        # Shared by all requests, because it caches credentials. They are resolved at the first
        # request.
        self._auth = ServerlessAuth()
        # MLflow creates every installed provider, whether or not it is selected.
        if os.environ.get("MLFLOW_TRACKING_AUTH") == _NAME:
            _lower_the_size_of_uploads_in_parts()

    def get_name(self) -> str:
        """Returns the value of `MLFLOW_TRACKING_AUTH` that selects this provider."""
        return _NAME

    def get_auth(self) -> ServerlessAuth:
        """Returns the authentication, which MLflow passes to `requests`. Called for each request."""
        _lower_the_size_of_uploads_in_parts()
        return self._auth
