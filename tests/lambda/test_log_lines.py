"""Tests of the lines that functions' programs write to their logs, as Lambda collects them."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.runtime_api import TRACE_ID, Function, FunctionFailed
from tests.support.throttled_engine import ThrottledEngine
from tools.cost.lines import read as read_lines
from tools.cost.model import data

from .conftest import PATIENCE_SECONDS, REPOSITORY, LocalLambda, function_settings

#: Maximum difference between lines whose numbers have different digits, in bytes.
_DIGITS = 6


def _lines(function: Function) -> list[dict[str, Any]]:
    """Returns the lines of a function's log, all of which have to be in the format that Lambda
    and the metric filters expect.
    """
    lines = [json.loads(line) for line in function.log().splitlines()]
    for line in lines:
        assert line["timestamp"].endswith("Z"), line
        age = datetime.now(UTC) - datetime.fromisoformat(line["timestamp"])
        assert 0 <= age.total_seconds() < 10 * PATIENCE_SECONDS, line
        assert line["level"] in ("INFO", "WARN", "ERROR"), line
        assert isinstance(line["fields"]["message"], str), line
        assert line.keys() <= {"timestamp", "level", "fields", "target", "requestId"}, line
    return lines


def _of(lines: list[dict[str, Any]], message: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["fields"]["message"] == message]


@pytest.fixture
def function(local_lambda: LocalLambda, tmp_path: Path) -> Iterator[Callable[..., Function]]:
    """Returns a function that runs a program with additional environment variables."""
    with ExitStack() as stops:

        def run(name: str, **settings: str) -> Function:
            settings = function_settings(local_lambda.engine, local_lambda.bucket, local_lambda.ui) | settings
            directory = tmp_path / str(len(list(tmp_path.iterdir())))
            directory.mkdir()
            function = Function(REPOSITORY / "target/debug" / name, directory, settings, PATIENCE_SECONDS)
            stops.callback(function.stop)
            return function

        yield run


def _event(name: str) -> Any:
    return json.loads((REPOSITORY / "events" / f"{name}.json").read_text())


def _log_batch(function: Function) -> int:
    """Sends a batch for a run that does not exist, and returns the status."""
    return function.invoke(_event("log-batch"))["statusCode"]


def test_the_line_of_a_request_is_as_long_as_the_cost_page_and_the_guide_say(function):
    tracking = function("tracking")
    assert _log_batch(tracking) == 404
    [written] = [line for line in tracking.log().splitlines() if "log-batch" in line]
    [line] = _of(_lines(tracking), "request")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", line["requestId"])
    assert written.count(line["requestId"]) == 1
    assert TRACE_ID[:20] not in written
    [priced] = data("assumptions.json")["own lines"]["value"]
    [shown] = re.findall(r"^\{.*\"target\":\"request\".*\}$", (REPOSITORY / "docs/guide/operate.md").read_text("utf-8"), re.MULTILINE)
    for example in (priced, shown):
        fields = json.loads(example)
        # The examples have a caller. The line of this test has none.
        caller = f',"caller":"{fields["fields"].pop("caller")}"'
        assert (list(line), list(line["fields"])) == (list(fields), list(fields["fields"]))
        assert line["fields"]["route"] == fields["fields"]["route"]
        assert abs(len(written) - len(example.replace(caller, ""))) <= _DIGITS, (written, example)


def test_lines_of_the_local_server_count_as_those_of_functions(function):
    """Checks the computed lengths of lines of a local server, which `bench/hour.py` records."""
    tracking = function("tracking")
    _log_batch(tracking)
    assert "statusCode" in tracking.invoke(_event("create-experiment"))
    lines = _of(_lines(tracking), "request")
    for line in lines:
        fields = line["fields"] | {"route": json.dumps(line["fields"]["route"])}
        text = " ".join(f"{name}={value}" for name, value in fields.items() if name != "message")
        [as_json], [as_text] = read_lines(json.dumps(line, separators=(",", ":"))), read_lines(f'{line["timestamp"]}  INFO request: request {text}')
        assert as_json == as_text
    assert len(lines) == 2


def test_warnings_and_errors_remain_if_lambda_says_so(function, local_lambda, tmp_path):
    """Checks the log level that `ApplicationLogLevel=WARN` sets by a variable. Lambda also drops
    lines below the level, and lines that it cannot parse.
    """
    quiet = function("tracking", AWS_LAMBDA_LOG_LEVEL="WARN")
    assert _log_batch(quiet) == 404
    assert quiet.log() == ""
    with ThrottledEngine.over_new_engine(tmp_path / "throttled") as engine:
        throttled = function("tracking", AWS_LAMBDA_LOG_LEVEL="WARN", DYNAMODB_ENDPOINT=engine.options[1], **engine.environment)
        assert throttled.invoke(_event("create-experiment"))["statusCode"] == 200
        engine.throttled.add("mlflow")
        assert throttled.invoke(_event("create-experiment"))["statusCode"] == 429
        [line] = _of(_lines(throttled), "call throttled")
        assert (line["level"], len(line["requestId"])) == ("WARN", 36)
    indexer = function("fts-indexer", AWS_LAMBDA_LOG_LEVEL="WARN")
    for _ in range(11):
        indexer.invoke(_event("stream-poison"))
    [line] = _of(_lines(indexer), "a record is left behind")
    assert (line["level"], len(line["requestId"])) == ("ERROR", 36)
    assert not [line for line in _lines(indexer) if line["level"] == "INFO"]


def test_a_failure_to_start_is_an_error_line(function):
    for name in ("tracking", "fts-indexer", "housekeeper"):
        broken = function(name, AWS_LAMBDA_LOG_LEVEL="WARN", TABLE_NAME="missing")
        with pytest.raises(FunctionFailed):
            broken.invoke(_event("tick"))
        lines = [json.loads(line) for line in broken.log().splitlines() if line.startswith("{")]
        [line] = _of(lines, "the function has failed")
        assert (line["level"], "timestamp" in line) == ("ERROR", True), line
