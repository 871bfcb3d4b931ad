"""End-to-end tests of mlflow-serverless from outside, compared with stock MLflow."""
