"""Tests of the indexer's program: it receives sample stream events from `events/`, about runs
created for the test, as from the event source mapping. The feed of `mlflow-serverless engine`,
which replaces the mapping locally, is tested as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from tests.support.http import Request, Side
from tests.support.processes import wait_until

from .conftest import PATIENCE_SECONDS, Engine, LocalLambda, start_engine

#: The experiment and runs in the sample events.
_EXPERIMENT = "EXP#1"
#: Start time of the runs in ms, which must match the sample event of a removal.
_STARTED = 1767225600001
_RUNS = [f"019b76da8c000000000000000010000{number}" for number in (1, 2, 3)]


@dataclass(frozen=True)
class Run:
    """A run that was created through the gateway."""

    experiment: str
    id: str

    @property
    def partition(self) -> str:
        return f"EXP#{self.experiment}"


class Rows:
    """The rows of the engine's table."""

    def __init__(self, engine: Engine):
        self._client = boto3.client(
            "dynamodb",
            endpoint_url=engine.url,
            region_name="local",
            aws_access_key_id=engine.access_key,
            aws_secret_access_key=engine.secret,
        )

    def _in(self, partition: str, run: Run) -> dict[str, dict]:
        """Returns the items of a partition whose sort key contains the run, by key."""
        pages = self._client.get_paginator("query").paginate(
            TableName="mlflow",
            KeyConditionExpression="PK = :partition",
            ExpressionAttributeValues={":partition": {"S": partition}},
            ConsistentRead=True,
        )
        items = [item for page in pages for item in page["Items"]]
        return {f"{partition} {item['SK']['S']}": item for item in items if run.id in item["SK"]["S"]}

    def of(self, run: Run) -> dict[str, dict]:
        """Returns the items of a run's experiment and of the index whose sort key contains the run,
        by key.
        """
        lists = [f"T#{level}{part}#run#attributes.run_name" for level in "3W" for part in range(8)]
        index = [f"IX#{run.experiment}#{part}" for part in ["CA#run", "CD#run", "M#loss", "P#depth", *lists]]
        partitions = [self._in(partition, run) for partition in [run.partition, *index]]
        return {key: item for items in partitions for key, item in items.items()}

    def is_marked(self, run: Run) -> bool:
        """Returns whether the run has changes that are not indexed yet."""
        return any("lsi5sk" in item for item in self.of(run).values())

    def index_of(self, run: Run) -> set[str]:
        """Returns the keys of the index entries of a run, without their common prefix."""
        beginning = f"IX#{run.experiment}#"
        return {key.removeprefix(beginning) for key in self.of(run) if key.startswith(beginning)}

    def change(self, run: Run) -> None:
        """Updates the run's document with the attributes that every write sets."""
        self._client.update_item(
            TableName="mlflow",
            Key={"PK": {"S": run.partition}, "SK": {"S": f"R#{run.id}"}},
            UpdateExpression="SET lsi5sk = :mark ADD rev :one",
            ExpressionAttributeValues={":mark": {"S": f"R#{run.id}"}, ":one": {"N": "1"}},
        )

    def delete(self, run: Run) -> None:
        """Deletes the run's document, as the TTL does eventually for a deleted run."""
        key = {"PK": {"S": run.partition}, "SK": {"S": f"R#{run.id}"}}
        self._client.delete_item(TableName="mlflow", Key=key)


@pytest.fixture
def rows(local_lambda: LocalLambda) -> Rows:
    return Rows(local_lambda.engine)


@pytest.fixture
def new_run(gateway: str, request: pytest.FixtureRequest) -> Callable[[], Run]:
    """Returns a function that creates runs in an experiment of this test, each with a name, a param
    and a metric.
    """
    side = Side("gateway", gateway)

    def post(path: str, body: dict) -> Any:
        answer = side.send(Request.of_json("POST", f"/api/2.0/mlflow/{path}", body))
        assert answer.status == 200, answer
        return answer.body

    experiment = post("experiments/create", {"name": request.node.name})["experiment_id"]

    def new() -> Run:
        body = {"experiment_id": experiment, "run_name": "brave ant", "start_time": _STARTED}
        run = post("runs/create", body)["run"]["info"]["run_id"]
        metrics = [{"key": "loss", "value": 0.5, "timestamp": 1, "step": 0}]
        post("runs/log-batch", {"run_id": run, "metrics": metrics, "params": [{"key": "depth", "value": "7"}]})
        return Run(experiment, run)

    return new


@pytest.fixture
def index(invoke_raw: Callable[..., Any]) -> Callable[..., list[str]]:
    """Returns a function that sends the indexer a sample event about runs, and returns the numbers
    of the records to be retried.
    """

    def send(event: str, *runs: Run) -> list[str]:
        replaced = dict(zip(_RUNS, (run.id for run in runs))) | {_EXPERIMENT: runs[0].partition}
        return [failure["itemIdentifier"] for failure in invoke_raw("fts-indexer", event, replaced)["batchItemFailures"]]

    return send


def assert_indexed(rows: Rows, run: Run) -> None:
    """Checks that the run is not marked, and has its entries in the lists."""
    assert not rows.is_marked(run)
    index = rows.index_of(run)
    assert all(any(key.startswith(kind) for key in index) for kind in ["CA#run ", "M#loss ", "P#depth 7#", "T#3"]), index
    assert any(" e$20a#" in key for key in index if key.startswith("T#3"))


def test_a_new_run_is_indexed_and_no_other(new_run, index, rows):
    run, other = new_run(), new_run()
    assert rows.is_marked(run)
    assert not rows.index_of(run)
    assert index("stream-new-run", run) == []
    assert_indexed(rows, run)
    assert rows.is_marked(other)
    assert not rows.index_of(other)


def test_a_batch_may_come_twice(new_run, index, rows):
    run = new_run()
    assert index("stream-new-run", run) == []
    once = rows.of(run)
    assert index("stream-new-run", run) == []
    assert rows.of(run) == once


def test_a_run_that_is_gone_leaves_nothing_behind(new_run, index, rows):
    run, other = new_run(), new_run()
    for each in (run, other):
        assert index("stream-new-run", each) == []
    rows.delete(run)
    assert rows.index_of(run)
    assert index("stream-removed-run", run) == []
    assert not rows.of(run)
    assert_indexed(rows, other)


def test_a_run_that_is_there_again_keeps_its_index(new_run, index, rows):
    run = new_run()
    assert index("stream-new-run", run) == []
    assert index("stream-removed-run", run) == []
    assert_indexed(rows, run)


def test_a_malformed_record_is_named_and_no_other(new_run, index, rows):
    runs = [new_run() for _ in _RUNS]
    assert index("stream-poison", *runs) == ["100000000000000000002"]
    first, malformed, third = runs
    assert_indexed(rows, first)
    assert_indexed(rows, third)
    assert rows.is_marked(malformed)


def test_an_event_about_a_run_that_never_was(new_run, index, rows):
    known = new_run()
    never = Run(known.experiment, "0" * 32)
    assert index("stream-new-run", never) == []
    assert not rows.of(never)
    assert rows.is_marked(known)


def test_a_run_that_was_just_indexed_is_put_off(new_run, index, invoke_raw, rows):
    run = new_run()
    assert index("stream-new-run", run) == []
    rows.change(run)
    once = rows.of(run)
    assert rows.is_marked(run)
    assert index("stream-new-run", run) == []
    assert rows.of(run) == once, "the run must stay marked until it is due"
    # A tick is not a batch of the stream. It finds that nothing is due yet.
    assert invoke_raw("fts-indexer", "tick") == {"batchItemFailures": []}
    assert rows.of(run) == once


def test_the_engine_feeds_the_indexer(new_run, local_lambda, rows, tmp_path):
    """Feeds the indexer from a second engine on the same data, because the engine that the
    functions use has no feed.
    """
    run = new_run()
    assert rows.is_marked(run)
    feeding = start_engine(tmp_path, local_lambda.data, "--indexer-url", local_lambda.lambda_api)
    try:
        wait_until(lambda: not rows.is_marked(run), f"indexing of {run}", feeding.process, PATIENCE_SECONDS)
        assert_indexed(rows, run)
    finally:
        feeding.process.stop()
