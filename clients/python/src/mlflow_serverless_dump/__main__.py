"""Runs the command with `python -m mlflow_serverless_dump`."""

import sys

from mlflow_serverless_dump.command import main

sys.exit(main())
