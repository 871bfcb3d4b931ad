"""Signs the requests of stock MLflow clients for mlflow-serverless behind API Gateway.

`MLFLOW_TRACKING_AUTH=mlflow-serverless` is all that MLflow needs. `SigV4` also works on its own, as the `auth` of
`requests`.
"""

from mlflow_serverless_auth.signer import SigningError, SigV4

__all__ = ["SigV4", "SigningError"]
