"""Tests of the functions as they are deployed: their programs in a local Lambda, and the template
that deploys them.
"""
