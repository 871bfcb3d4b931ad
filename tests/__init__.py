"""End-to-end tests: mlflow-serverless seen from outside, next to stock MLflow."""
