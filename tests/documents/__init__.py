"""Tests that the documents agree with the code and the generated pages."""
