"""Runs the stock Python client against the server under test."""
