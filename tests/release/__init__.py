"""Tests of the files that a release consists of."""
