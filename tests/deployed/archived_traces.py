"""Steps about traces that are older than 30 days, whose spans the housekeeper moves from the table to
the bucket.

Time does not pass for these steps. Instead, they set the times of marks and of postponed work back, as
if some minutes had passed.
"""

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import requests
from mlflow import MlflowClient
from mlflow_serverless_auth import SigV4

from .rare import housekeeping
from .signed import ask, done, expect
from .steps import run_command, wait_for

_V3 = "/api/3.0/mlflow"
_SECONDS = 300
_HOUR_SECONDS, _DAY_SECONDS = 3_600, 86_400
#: Age of the traces.
_AGE_DAYS = 40
_TRACES, _SPANS = 200, 10
#: One in so many traces has a span with a rare name.
_RARE_EVERY, _RARE_NAME = 20, "rare"
#: Within this time after the traces were sent, they are archived.
_MAX_DELAY_SECONDS = 1_200
#: Time that the remaining steps take at most. If the hour ends earlier, they wait for the next one.
_STEPS_SECONDS = 240
#: Age of a mark from which no request relies on it (`MAX_RELIABLE_MARK_AGE`).
_RELIABLE_SECONDS = 60
#: By how much times are set back. It is more than the time until a mark is quiet and until its partition
#: is packed.
_ELAPSED_MS = 240_000
_LOST = "The spans of trace {} cannot be read, because an object of the archive is missing or damaged."
_NOTHING_MISSING = "No objects are missing. 0 objects are not referenced.\n"
#: Maximum median latency of reading archived traces on a machine with nothing else to do.
_MAX_SECONDS = 0.15
#: The measured request that reads the spans of all traces.
_WITH_NAME = "traces with a span of a name"


def old_traces_arrive(world, directory: Path) -> None:
    """Sends traces of one day 40 days ago. The housekeeper checks each experiment during one hour of the
    day, so they are sent to the experiment of this hour, and shortly before its end also to that of the
    next one.
    """
    client = MlflowClient(world.signed)
    hours = {_hour(time.time()), _hour(time.time() + _MAX_DELAY_SECONDS + _STEPS_SECONDS)}
    number = 0
    while hours:
        number += 1
        experiment = client.create_experiment(f"unused {number} of the archive")
        hour = int(experiment) % 24
        if hour in hours:
            hours.remove(hour)
            client.rename_experiment(experiment, _name(hour))
            _send(world, experiment)


def spans_of_old_traces_are_archived(world, directory: Path) -> None:
    """Checks that traces that are packed and then archived are the same for clients, and compares the
    latencies.
    """
    if (left := _HOUR_SECONDS - time.time() % _HOUR_SECONDS) < _STEPS_SECONDS:
        time.sleep(left)
    experiment = _experiment(world)
    # A function may rely on the marks for this long when the tag of a trace is set below.
    marked = max((int(mark["marked"]["N"]) for mark in _marks(world, experiment)), default=0)
    time.sleep(max(0.0, marked / 1000 + _RELIABLE_SECONDS - time.time()))
    _pack(world, experiment)
    counts = _counts(world, experiment)
    assert counts["B"] >= 2 and counts["S"] >= counts["B"], counts
    assert _objects(world) == set()
    assert _check(world) == (0, _NOTHING_MISSING)
    ids, measured, archived = _ids(experiment), _requests(world, experiment), {}
    seen, packed = _view(world, experiment, ids), {name: _median(*request) for name, request in measured.items()}
    assert {one["trace_id"] for one in seen["all"]} == set(ids)
    assert set(_reads(world, measured).values()) == {0}
    assert housekeeping(world) == {"is_done": True}
    assert _counts(world, experiment) == {"B": counts["B"]}
    assert len(_objects(world)) == counts["B"]
    assert _view(world, experiment, ids) == seen

    def is_fast(name: str) -> bool:
        archived[name] = _median(*measured[name])
        # While the machine is busy, all requests take longer.
        return archived[name] < max(_MAX_SECONDS, 2 * packed[name])

    for name in measured:
        wait_for(partial(is_fast, name), f"fast response with {name}")
    reads = _reads(world, measured)
    print("\nmedian latency in ms of packed and of archived traces, and reads of the archive:")
    for name in measured:
        print(f"  {name}: {packed[name] * 1000:.0f}, {archived[name] * 1000:.0f}, {reads[name]}")
    assert list(reads.values())[:3] == [0, 0, 1], reads
    # The search examines traces in batches, which may begin in the middle of a block.
    assert counts["B"] <= reads[_WITH_NAME] <= 2 * counts["B"], reads
    assert _check(world) == (0, _NOTHING_MISSING)


def archived_traces_change(world, directory: Path) -> None:
    """Changes and deletes archived traces. The next pass of the housekeeper replaces the object."""
    experiment = _experiment(world)
    ids = _ids(experiment)
    tagged, deleted, others = ids[7], ids[9], [*ids[::8], ids[7]]
    counts, objects, seen = _counts(world, experiment), _objects(world), _view(world, experiment, others)
    done(world, "PATCH", f"{_V3}/traces/{tagged}/tags", {"key": "reviewed", "value": "yes"})
    done(world, "POST", f"{_V3}/traces/delete-traces", {"experiment_id": experiment, "request_ids": [deleted]})
    for info in [seen["traces"][tagged]["trace_info"], *(one for one in seen["all"] if one["trace_id"] == tagged)]:
        info["tags"]["reviewed"] = "yes"
    seen["all"] = [one for one in seen["all"] if one["trace_id"] != deleted]

    def is_as_expected() -> bool:
        expect(world, 404, "GET", f"{_V3}/traces/get", query={"trace_id": deleted})
        return _view(world, experiment, others) == seen

    assert is_as_expected()
    # The indexer moves the spans of the deleted trace's neighbors back to the table.
    _pack(world, experiment)
    assert _counts(world, experiment)["S"] > 0
    assert is_as_expected()
    assert housekeeping(world) == {"is_done": True}
    assert _counts(world, experiment) == counts
    # The previous object stays, because a table that is restored may refer to it.
    assert objects < _objects(world) and len(_objects(world)) == len(objects) + 1
    assert is_as_expected()
    assert _check(world) == (0, _NOTHING_MISSING)


def an_archived_object_is_missing(world, directory: Path) -> None:
    """Deletes each object of the archive in turn, and restores it. Only requests for the spans of its
    block fail.
    """
    experiment = _experiment(world)
    s3, bucket = world.account.emulator.s3, world.stack.outputs["BucketName"]
    ids = _ids(experiment)[::8]
    seen = _view(world, experiment, ids)
    affected = Counter()
    for key in _objects(world):
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        s3.delete_object(Bucket=bucket, Key=key)
        lost = []
        for trace, answer in zip(ids, _each(lambda trace: _get(world, trace), ids), strict=True):
            if answer.status_code == 200:
                assert answer.json()["trace"] == seen["traces"][trace]
            else:
                assert (answer.status_code, answer.json()["message"]) == (500, _LOST.format(trace)), answer.text
                lost.append(trace)
        assert _list(world, experiment) == seen["all"]
        # Nothing refers to the object that was replaced.
        said = f"Object {key.rpartition('/')[2]} is missing."
        status, output = _check(world)
        assert (status, said in output) == ((1, True) if lost else (0, False)), output
        affected.update(lost)
        s3.put_object(Bucket=bucket, Key=key, Body=content)
    assert affected == Counter(ids), "the spans of each trace are in one object"
    assert _view(world, experiment, ids) == seen
    assert _check(world) == (0, _NOTHING_MISSING)


def _hour(seconds: float) -> int:
    return int(seconds) // _HOUR_SECONDS % 24


def _name(hour: int) -> str:
    return f"old traces of hour {hour}"


def _experiment(world) -> str:
    """Returns the experiment with old traces that the housekeeper checks in this hour."""
    return MlflowClient(world.signed).get_experiment_by_name(_name(_hour(time.time()))).experiment_id


def _id(experiment: str, number: int) -> str:
    return f"tr-{0xA << 64 | int(experiment) << 32 | number:032x}"


def _ids(experiment: str) -> list[str]:
    return [_id(experiment, number) for number in range(_TRACES)]


def _send(world, experiment: str) -> None:
    noon = (int(time.time()) // _DAY_SECONDS - _AGE_DAYS) * _DAY_SECONDS + _DAY_SECONDS // 2
    begins = {number: noon + number for number in range(_TRACES)}

    def start(number: int) -> None:
        info = {
            "trace_id": _id(experiment, number),
            "trace_location": _place(experiment),
            "request_time": datetime.fromtimestamp(begins[number], timezone.utc).isoformat().replace("+00:00", "Z"),
            "execution_duration": "0.1s",
            "state": "OK",
            "request_preview": _words(number),
            "response_preview": _words(number + 1),
            "tags": {"mlflow.traceName": "agent"},
        }
        done(world, "POST", f"{_V3}/traces", {"trace": {"trace_info": info}})

    def export(numbers: range) -> None:
        spans = [_span(experiment, number, place, begins[number]) for number in numbers for place in range(_SPANS)]
        body, headers = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, {"x-mlflow-experiment-id": experiment}
        answer = requests.post(f"{world.signed}/v1/traces", json=body, headers=headers, auth=SigV4(), timeout=_SECONDS)
        assert answer.status_code == 200, answer.text

    _each(export, [range(first, first + 50) for first in range(0, _TRACES, 50)])
    _each(start, range(_TRACES))


def _span(experiment: str, number: int, place: int, began: int) -> dict[str, Any]:
    """Returns a span of half a KB. `began` is the start of the trace in seconds."""

    def attribute(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": json.dumps(value)}}

    is_rare = place == _SPANS - 1 and number % _RARE_EVERY == 0
    start = began * 1000 + 10 * place
    span = {
        "traceId": _id(experiment, number).removeprefix("tr-"),
        "spanId": f"{place + 1:016x}",
        "name": _RARE_NAME if is_rare else f"step {place}",
        "startTimeUnixNano": f"{start}000000",
        "endTimeUnixNano": f"{start + (100 if place == 0 else 9)}000000",
        "attributes": [
            attribute("mlflow.spanInputs", _words(100 * number + place)),
            attribute("mlflow.spanOutputs", _words(100 * number + place + 1)),
            attribute("mlflow.spanType", "TOOL"),
        ],
    }
    return span | ({"parentSpanId": f"{1:016x}"} if place else {})


def _words(seed: int) -> str:
    return " ".join(f"word{(seed * 31 + place * place * 17) % 97}" for place in range(25))


def _place(experiment: str) -> dict[str, Any]:
    return {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}


def _each(call: Callable[[Any], Any], values: Any) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(call, values))


def _get(world, trace: str) -> Any:
    return ask(world, "GET", f"{_V3}/traces/get", query={"trace_id": trace})


def _batch(world, traces: list[str]) -> list[dict[str, Any]]:
    """Returns traces with their spans."""
    return done(world, "GET", f"{_V3}/traces/batchGet", query={"trace_ids": traces})["traces"]


def _search(world, experiment: str, **fields: Any) -> dict[str, Any]:
    return done(world, "POST", f"{_V3}/traces/search", {"locations": [_place(experiment)], "max_results": 100} | fields)


def _list(world, experiment: str) -> list[dict[str, Any]]:
    """Returns all traces of the experiment without their spans, from two pages."""
    first = _search(world, experiment)
    return first["traces"] + _search(world, experiment, page_token=first["next_page_token"])["traces"]


def _view(world, experiment: str, ids: list[str]) -> dict[str, Any]:
    """Returns what clients see: these traces with their spans, the list of all traces, and those with a
    span of the rare name.
    """
    batches = [_batch(world, ids[begin : begin + 100]) for begin in range(0, len(ids), 100)]
    traces = {one["trace_info"]["trace_id"]: one for batch in batches for one in batch}
    assert set(traces) == set(ids) and all(len(one["spans"]) == _SPANS for one in traces.values())
    for trace in (ids[0], ids[-1]):
        assert _get(world, trace).json()["trace"] == traces[trace]
    rare = _search(world, experiment, filter=f"span.name = '{_RARE_NAME}'")["traces"]
    assert [one["trace_id"] for one in rare] == _ids(experiment)[::_RARE_EVERY][::-1]
    return {"traces": traces, "all": _list(world, experiment), "rare": rare}


def _requests(world, experiment: str) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Returns the requests that are measured, and how often."""
    ids = _ids(experiment)
    named = f"span.name = '{_RARE_NAME}'"
    return {
        "a page of 25 traces": (7, lambda: _search(world, experiment, max_results=25)),
        "a page of 100 traces": (7, lambda: _search(world, experiment)),
        "a trace with its spans": (7, lambda: _get(world, ids[50]).raise_for_status()),
        "25 traces with their spans": (3, lambda: _batch(world, ids[:25])),
        "100 traces with their spans": (3, lambda: _batch(world, ids[:100])),
        _WITH_NAME: (3, lambda: _search(world, experiment, filter=named)),
    }


def _median(count: int, request: Callable[[], Any]) -> float:
    """Returns the median latency in seconds."""

    def seconds() -> float:
        begin = time.perf_counter()
        request()
        return time.perf_counter() - begin

    return statistics.median(seconds() for _ in range(count))


def _reads(world, measured: dict[str, tuple[int, Callable[[], Any]]]) -> dict[str, int]:
    """Returns the number of reads of the archive for each request."""
    reads = {}
    for name, (_, request) in measured.items():
        before = len(world.account.wire.calls)
        request()
        calls = world.account.wire.calls[before:]
        reads[name] = sum(call.action == "s3:GetObject" and "/.archive/" in call.resource for call in calls)
    return reads


def _check(world) -> tuple[int, str]:
    """Returns the status and the output of the comparison of the archive with the table."""
    process = run_command(world, "gc", "--check-archive", "--artifact-root", f"s3://{world.stack.outputs['BucketName']}")
    return process.returncode, process.stdout


def _objects(world) -> set[str]:
    """Returns the keys of the objects of the archive."""
    found = world.account.emulator.s3.list_objects_v2(Bucket=world.stack.outputs["BucketName"], Prefix=".archive/")
    return {one["Key"] for one in found.get("Contents", [])}


def _rows(world, *partitions: str) -> Iterator[dict[str, Any]]:
    """Yields the keys and the times of all items whose partition keys begin with one of these texts."""
    pages = world.account.emulator.dynamodb.get_paginator("scan").paginate(
        TableName=world.stack.outputs["TableName"], ProjectionExpression="PK, SK, marked"
    )
    for page in pages:
        yield from (item for item in page["Items"] if item["PK"]["S"].startswith(partitions))


def _marks(world, experiment: str) -> list[dict[str, Any]]:
    return [item for item in _rows(world, f"TR#{experiment}#") if item["SK"]["S"].startswith("M#")]


def _counts(world, experiment: str) -> Counter[str]:
    """Returns the numbers of marks (M), blocks (B) and items of spans (S) of an experiment."""
    kinds = (item["SK"]["S"].partition("#")[0] for item in _rows(world, f"TR#{experiment}#", f"TS#{experiment}#"))
    return Counter(kind for kind in kinds if kind in "MBS")


def _pack(world, experiment: str) -> None:
    """Packs the traces of an experiment as if some minutes had passed since they were changed."""
    emulator, table = world.account.emulator, world.stack.outputs["TableName"]

    def set_back(mark: dict[str, Any]) -> None:
        written = int(mark["marked"]["N"])
        with suppress(emulator.dynamodb.exceptions.ConditionalCheckFailedException):
            emulator.dynamodb.update_item(
                TableName=table,
                Key={name: mark[name] for name in ("PK", "SK")},
                UpdateExpression="SET marked = :earlier",
                ConditionExpression="marked = :written",
                ExpressionAttributeValues={":earlier": {"N": str(written - _ELAPSED_MS)}, ":written": {"N": str(written)}},
            )

    def is_packed() -> bool:
        quiet = time.time() * 1000 - _ELAPSED_MS
        _each(set_back, [mark for mark in _marks(world, experiment) if int(mark["marked"]["N"]) > quiet])
        for row in _rows(world, "LATER#"):
            begin, due, rest = row["SK"]["S"].split("#", 2)
            if rest.startswith(f"traces#{experiment}#"):
                # The row itself stays, because the indexer relies on it for later changes.
                earlier = {"S": f"{begin}#{int(due, 16) - _ELAPSED_MS:016x}#{rest}"}
                emulator.dynamodb.put_item(TableName=table, Item={"PK": row["PK"], "SK": earlier})
        # As the schedule in the template does it.
        answer = emulator.functions.invoke(FunctionName=f"{world.stack.name}-fts-indexer", Payload=b'{"source": "aws.events"}')
        assert "FunctionError" not in answer, answer["Payload"].read()
        time.sleep(2)
        return not _marks(world, experiment)

    wait_for(is_packed, "packed traces")


#: The steps in their order, after the first one, which comes early.
ARCHIVED_TRACES = [spans_of_old_traces_are_archived, archived_traces_change, an_archived_object_is_missing]
