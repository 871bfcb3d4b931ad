"""The embedded engine alone, over HTTP. It replaces DynamoDB for a server, including streams."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.session import Session

from tests.support.processes import ChildProcess, child_environment, wait_until
from tests.support.servers import binary


@dataclass(frozen=True)
class LocalEngine:
    url: str
    #: Credentials that the engine accepts, and a region, as environment variables.
    environment: Mapping[str, str]

    def marks(self, experiment: str) -> int:
        """Returns the number of marked runs of an experiment, which are changed and not indexed
        yet.
        """
        return self.client().query(
            TableName="mlflow",
            IndexName="LSI5",
            KeyConditionExpression="PK = :partition",
            ExpressionAttributeValues={":partition": {"S": f"EXP#{experiment}"}},
        )["Count"]

    def client(self) -> Any:
        """Returns a client for the tables."""
        return Session().create_client(
            "dynamodb",
            "local",
            endpoint_url=self.url,
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )


@contextmanager
def local_engine(directory: Path) -> Iterator[LocalEngine]:
    """Yields an engine with empty tables in memory. No indexer is attached to it."""
    directory.mkdir()
    process = ChildProcess(
        [str(binary()), "engine", "--memory", "--port", "0"], child_environment(), directory, directory / "engine.log"
    )
    try:
        said = wait_until(lambda: _said(process.log_text()), "access key of the engine", process)
        keys = dict(line.split("=", 1) for line in said[1:3])
        yield LocalEngine(said[0], keys | {"AWS_REGION": "local"})
    finally:
        process.stop()


def _said(log: str) -> list[str] | None:
    """Returns the address and the key, or `None` until all of them are printed."""
    lines = log.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith("http://")), len(lines))
    said = lines[begin : begin + 3]
    return said if len(said) == 3 and log.endswith("\n") else None
