"""The same requests to stock MLflow and to this project's server, and the differences between their answers."""
