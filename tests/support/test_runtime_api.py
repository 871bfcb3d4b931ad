"""Tests of the runtime API, with a short program as the function."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.support.http_server import serving
from tests.support.invoke_api import invoking
from tests.support.runtime_api import LONGEST_BYTES, EventTooLong, Function, FunctionFailed

#: Does what the event specifies, and returns the event and its process id. Prints a line at the
#: start.
_PROGRAM = f"""#!{sys.executable}
import http.client, json, os, pathlib, time
print("began with", os.environ["SETTING"], flush=True)
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])

def post(path, value):
    api.request("POST", "/2018-06-01/runtime/" + path, json.dumps(value))
    assert api.getresponse().read() == b""

if os.environ["SETTING"] == "broken":
    post("init/error", {{"errorType": "NoTable", "errorMessage": "no table"}})
    raise SystemExit(1)
while True:
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    answer = api.getresponse()
    event, number = json.loads(answer.read()), answer.headers["Lambda-Runtime-Aws-Request-Id"]
    assert float(answer.headers["Lambda-Runtime-Deadline-Ms"]) > time.time() * 1000
    if event["do"] == "crash":
        os.abort()
    if event["do"] == "fail":
        post(f"invocation/{{number}}/error", {{"errorType": "Told", "errorMessage": "as told"}})
        continue
    while event["do"] == "hang" or event["do"] == "wait" and not pathlib.Path(event["for"]).exists():
        time.sleep(0.01)
    if event["do"] == "touch":
        pathlib.Path(event["file"]).touch()
    post(f"invocation/{{number}}/response", {{"pid": os.getpid(), "event": event, "more": "x" * event.get("bytes", 0)}})
"""
_LONG_SECONDS = 300


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Function]]:
    """Yields a factory of functions that run the program."""
    program = tmp_path / "program"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    made: list[Function] = []

    def start(setting: str = "a setting", **options) -> Function:
        made.append(Function(program, tmp_path, {"SETTING": setting}, **{"seconds": _LONG_SECONDS} | options))
        return made[-1]

    yield start
    for function in made:
        function.stop()


def test_one_sandbox_serves_one_event_after_the_other(start: Callable[..., Function], tmp_path: Path):
    function = start()
    answers = [function.invoke({"do": "answer", "text": "é", "number": number}) for number in range(3)]
    assert [answer["event"]["number"] for answer in answers] == [0, 1, 2] and answers[0]["event"]["text"] == "é"
    assert (len({answer["pid"] for answer in answers}), function.started) == (1, 1)
    assert (tmp_path / "program-1.log").read_text() == "began with a setting\n"


def test_events_at_once_go_to_several_sandboxes(start: Callable[..., Function], tmp_path: Path):
    function, gate = start(most=2), tmp_path / "gate"
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(function.invoke, {"do": "wait", "for": str(gate)})
        # The first event can only finish after the second has been handled.
        touched = function.invoke({"do": "touch", "file": str(gate)})
        assert waiting.result()["pid"] != touched["pid"]
    assert function.started == 2


def test_there_are_not_more_sandboxes_than_it_may_have(start: Callable[..., Function]):
    function, together = start(most=2), threading.Barrier(8, timeout=60)

    def invoke(number: int) -> int:
        together.wait()
        return function.invoke({"do": "answer", "number": number})["event"]["number"]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(invoke, range(8))) == list(range(8))
    assert function.started <= 2


def test_a_crash_is_told_and_the_next_event_gets_a_new_sandbox(start: Callable[..., Function]):
    function = start()
    before = function.invoke({"do": "answer"})["pid"]
    with pytest.raises(FunctionFailed) as failed:
        function.invoke({"do": "crash"})
    assert failed.value.kind == "Runtime.ExitError"
    assert function.invoke({"do": "answer"})["pid"] != before


def test_an_error_is_told_and_the_sandbox_stays(start: Callable[..., Function]):
    function = start()
    with pytest.raises(FunctionFailed, match="as told") as failed:
        function.invoke({"do": "fail"})
    assert failed.value.kind == "Told"
    function.invoke({"do": "answer"})
    assert function.started == 1


def test_what_cannot_start_is_told(start: Callable[..., Function]):
    with pytest.raises(FunctionFailed, match="no table") as failed:
        start("broken").invoke({"do": "answer"})
    assert failed.value.kind == "NoTable"


def test_what_takes_too_long_is_ended(start: Callable[..., Function]):
    function = start(seconds=0.5)
    with pytest.raises(FunctionFailed) as failed:
        function.invoke({"do": "hang"})
    assert failed.value.kind == "Sandbox.Timedout"


def test_no_more_than_lambda_carries(start: Callable[..., Function]):
    function = start()
    with pytest.raises(EventTooLong):
        function.invoke({"do": "answer", "text": "x" * LONGEST_BYTES})
    with pytest.raises(FunctionFailed) as failed:
        function.invoke({"do": "answer", "bytes": LONGEST_BYTES})
    assert failed.value.kind == "Function.ResponseSizeTooLarge"
    assert len(function.invoke({"do": "answer", "bytes": LONGEST_BYTES - 1_000})["more"]) == LONGEST_BYTES - 1_000


def test_a_function_that_is_not_built(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="build it"):
        Function(tmp_path / "none", tmp_path, {}, 1)


def test_functions_are_called_by_their_names(start: Callable[..., Function]):
    with serving(invoking({"program": start()})) as url:
        call = f"{url}/2015-03-31/functions/program/invocations"
        answer = requests.post(call, json={"do": "answer"}, timeout=60)
        assert (answer.status_code, answer.json()["event"]) == (200, {"do": "answer"})
        failed = requests.post(call, json={"do": "fail"}, timeout=60)
        assert (failed.status_code, failed.headers["X-Amz-Function-Error"]) == (200, "Unhandled")
        assert failed.json() == {"errorType": "Told", "errorMessage": "as told"}
        assert requests.post(call, data=json.dumps({"text": "x" * LONGEST_BYTES}), timeout=60).status_code == 413
        assert requests.post(call.replace("program", "other"), json={}, timeout=60).status_code == 404
