"""Writes SQLite databases of MLflow's schema, which `mlflow-serverless import` reads."""
