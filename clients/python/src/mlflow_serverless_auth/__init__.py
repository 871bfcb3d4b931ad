"""Authenticates the requests of stock MLflow clients to mlflow-serverless.

Set `MLFLOW_TRACKING_AUTH=mlflow-serverless` to enable it for MLflow. `ServerlessAuth` and `SigV4` can also be used
without MLflow, as the `auth` argument of `requests`.
"""

from mlflow_serverless_auth.auth import ServerlessAuth
from mlflow_serverless_auth.exchange import NotSupportedError
from mlflow_serverless_auth.identity import IdentityError
from mlflow_serverless_auth.signer import SigningError, SigV4
from mlflow_serverless_auth.stored_tokens import StoredTokenError

__all__ = ["IdentityError", "NotSupportedError", "ServerlessAuth", "SigV4", "SigningError", "StoredTokenError"]
