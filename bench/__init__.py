"""Benchmarks of this project's server and stock MLflow."""
