"""Signs the requests of stock MLflow clients for mlflow-serverless behind API Gateway.

Set `MLFLOW_TRACKING_AUTH=mlflow-serverless` to enable it for MLflow. `SigV4` can also be used without MLflow, as the
`auth` argument of `requests`.
"""

from mlflow_serverless_auth.signer import SigningError, SigV4

__all__ = ["SigV4", "SigningError"]
