"""Measurements of this project's server beside stock MLflow."""
