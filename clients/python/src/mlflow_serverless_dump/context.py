"""State that is shared by the dumps of all kinds of entities."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mlflow import MlflowClient

from mlflow_serverless_dump.database import Database
from mlflow_serverless_dump.report import Report


@dataclass(frozen=True)
class Context:
    """A dump in progress."""

    client: MlflowClient
    database: Database
    report: Report
    pool: ThreadPoolExecutor
    #: Maximum number of results in memory.
    window: int
