"""Sends the same requests to stock MLflow and to this project's server, and compares
the responses.
"""
