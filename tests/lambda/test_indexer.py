"""The indexer's binary: the sample events of a stream in `events/`, handed over as the event source mapping does; and the
feed of `mlflow-serverless engine`, which takes the mapping's place."""

import boto3

from tests.support.http import Request, Side
from tests.support.processes import wait_until

from .conftest import PATIENCE_SECONDS, Engine


def failed(answer: dict) -> list[str]:
    """The numbers of the records that have to come again."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_new_run(invoke_raw):
    """The run is gone by now, which is no failure."""
    assert failed(invoke_raw("fts-indexer", "stream-new-run")) == []


def test_removed_run(invoke_raw):
    assert failed(invoke_raw("fts-indexer", "stream-removed-run")) == []


def test_a_malformed_record_is_named_and_no_other(invoke_raw):
    assert failed(invoke_raw("fts-indexer", "stream-poison")) == ["100000000000000000002"]


def test_a_batch_may_come_twice(invoke_raw):
    for _ in range(2):
        assert failed(invoke_raw("fts-indexer", "stream-new-run")) == []


def test_the_engine_feeds_the_indexer(local_lambda):
    """The indexer takes the mark off what it has indexed."""
    request = Request.of_json("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0"})
    run = Side("gateway", local_lambda.gateway).send(request).body["run"]["info"]["run_id"]

    def is_indexed() -> bool:
        item = stored(local_lambda.engine, {"PK": {"S": "EXP#0"}, "SK": {"S": f"R#{run}"}})
        return "rev" in item and "lsi5sk" not in item

    wait_until(is_indexed, f"indexing of {run}", local_lambda.engine.process, PATIENCE_SECONDS)


def stored(engine: Engine, key: dict) -> dict:
    """An item as it is in the table."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=engine.url,
        region_name="local",
        aws_access_key_id=engine.access_key,
        aws_secret_access_key=engine.secret,
    )
    return client.get_item(TableName="mlflow", Key=key, ConsistentRead=True)["Item"]
