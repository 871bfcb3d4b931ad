"""Tests of `make deny`."""
