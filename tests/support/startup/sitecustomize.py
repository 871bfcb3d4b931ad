"""Imported by Python when a process starts whose `PYTHONPATH` contains this directory: a server of
the next release. It is not started from a process that has installed the letters already.
"""

from tests.support import letters

letters.install()
