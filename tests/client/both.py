"""Runs a program of the stock client on two servers, and compares everything that the client reads
of its traces afterwards.

The client chooses the ids and times of traces, spans and assessments. Therefore it gets the same
random state and the same clock on both sides, and its choices are compared literally. Only values
that a server chooses are replaced, because they differ between two correct servers.
"""

import itertools
import json
import random
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import mlflow
import pandas
import pytest
from mlflow import MlflowClient
from mlflow.entities import Trace

from tests.compare.differences import compare_values
from tests.support.http import Side

#: A function that runs in a new experiment, which is the active one. Its result is also compared.
Program = Callable[[str], Any]

_START_NS = 1_700_000_000_123_456_789
#: Whole milliseconds. Otherwise, a duration may differ by one: it is either the client's value or
#: computed from the root span's times, depending on which of the client's concurrent requests
#: arrives last.
_TICK_NS = 7_000_000
_DIFFERENCES_SHOWN = 20

#: Generated ids: servers generate those of runs, assessments, datasets and records, and the digest
#: of a dataset. The client generates new ids for predictions each time.
_DRAWN = re.compile(
    r"(?<![-\w])(?P<kind>a-|dr?-|)[0-9a-f]{32}(?!\w)|(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_DIGEST = re.compile(r"[0-9a-f]{8}")
_KINDS = {"a-": "assessment", "d-": "dataset", "dr-": "record", "": "run"}
_EXPERIMENTS = {"experiment_id"}
_SIZES = {"mlflow.trace.sizeBytes": re.compile(r"^\d+$"), "mlflow.trace.sizeStats": re.compile(r"(?<=\"total_size_bytes\": )\d+")}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class TickingClock:
    """Replaces the module `time`. Each call advances the clock by a tick."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def time_ns(self) -> int:
        return _START_NS + next(self._ticks) * _TICK_NS

    def time(self) -> float:
        return self.time_ns() / 1e9


class Names:
    """Replaces values that a server has chosen: ids by their number in order of appearance, and
    times since the start of the program.
    """

    def __init__(self, experiment: str) -> None:
        self._began_ms = time.time_ns() // 1_000_000
        self._experiment = experiment
        self._names: dict[str, str] = {}

    def apply(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.apply(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.apply(item, key) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and self._is_of_server(value):
            return "<time of the server>"
        return self._apply_to_text(value, key) if isinstance(value, str) else value

    def _apply_to_text(self, text: str, key: str) -> str:
        if key in _EXPERIMENTS and text == self._experiment:
            return "<experiment>"
        if key in _SIZES:
            # The size includes the experiment's id, whose length depends on the server.
            return _SIZES[key].sub(lambda size: str(int(size[0]) - len(self._experiment)), text)
        if _TIME.fullmatch(text) and self._is_of_server(datetime.fromisoformat(text).timestamp() * 1000):
            return "<time of the server>"
        if key == "digest" and _DIGEST.fullmatch(text):
            return "<digest>"
        return _DRAWN.sub(self._name, text)

    def _is_of_server(self, ms: float) -> bool:
        # Times in responses may be rounded to seconds.
        return self._began_ms - 1000 <= ms <= time.time_ns() // 1_000_000 + 1000

    def _name(self, found: re.Match[str]) -> str:
        kind = "prediction" if found["uuid"] else _KINDS[found["kind"]]
        return self._names.setdefault(found[0], f"<{kind} {len(self._names)}>")


class Both:
    """Stock MLflow and the server under test."""

    def __init__(self, sides: tuple[Side, Side], directory: Path, patch: pytest.MonkeyPatch):
        self._sides = sides
        self._directory = directory
        self._patch = patch

    def compare(self, name: str, program: Program) -> None:
        """Runs a program on both servers, and compares its result and everything that is read
        afterwards.
        """
        reference, subject = (self._run(side, name, program) for side in self._sides)
        found = [str(difference) for difference in compare_values(name, reference, subject)]
        assert not found, f"{len(found)} differences:\n" + "\n".join(found[:_DIFFERENCES_SHOWN])

    def _run(self, side: Side, name: str, program: Program) -> Any:
        mlflow.set_tracking_uri(side.url)
        # The directory is the same on both sides. Clients that upload artifacts write to it
        # directly.
        artifacts = (self._directory / "artifacts").as_uri()
        experiment = MlflowClient(side.url).create_experiment(f"{name} {self._directory}", artifact_location=artifacts)
        mlflow.set_experiment(experiment_id=experiment)
        names = Names(experiment)
        self._set_clocks()
        before = random.getstate()
        # The seed is different for each test, because servers are shared.
        random.seed(f"{name} {self._directory.name}")
        try:
            returned = program(experiment)
        finally:
            random.setstate(before)
        mlflow.flush_trace_async_logging()
        read = {"returned": returned, "read": everything(experiment)}
        assert read["read"]["found"], "the program must create traces to compare"
        return names.apply(read)

    def _set_clocks(self) -> None:
        # Two clocks, because an evaluation judges one result while it computes the next.
        spans, assessments = TickingClock(), TickingClock()
        self._patch.setattr("opentelemetry.sdk.trace.time_ns", spans.time_ns)
        self._patch.setattr("mlflow.entities.span_event.time", spans)
        self._patch.setattr("mlflow.entities.assessment.time", assessments)


def everything(experiment: str) -> dict[str, Any]:
    """Reads all traces of an experiment in each of the ways that the client offers."""
    client = MlflowClient()
    frame = mlflow.search_traces(locations=[experiment])
    found = mlflow.search_traces(locations=[experiment], return_type="list")
    infos = client.search_traces(locations=[experiment], include_spans=False, order_by=["timestamp ASC"])
    page = client.search_traces(locations=[experiment], max_results=2)
    pages = [page]
    while page.token:
        page = client.search_traces(locations=[experiment], max_results=2, page_token=page.token)
        pages.append(page)
    return {
        "columns": {str(column): str(kind) for column, kind in frame.dtypes.items()},
        "rows": rows(frame),
        "found": [trace.to_dict() for trace in found],
        "infos": [trace.to_dict() for trace in infos],
        "pages": [[trace.to_dict() for trace in page] for page in pages],
        "got": [whole(mlflow.get_trace(trace.info.trace_id)) for trace in found],
        "sessions": [[trace.to_dict() for trace in session] for session in mlflow.search_sessions(locations=[experiment])],
    }


def whole(trace: Trace) -> dict[str, Any]:
    """Returns all representations of a trace."""
    info = trace.info
    return {
        "dict": trace.to_dict(),
        # Parsed, because the order of keys in a protobuf map is undefined.
        "json": json.loads(trace.to_json()),
        "row": _row(trace.to_pandas_dataframe_row()),
        "figures": [str(info.state), info.token_usage, info.cost, info.request_preview, info.response_preview],
        "spans": [
            [span.name, span.span_type, span.inputs, span.outputs, span.attributes, str(span.status), span.parent_id]
            for span in trace.data.spans
        ],
    }


def found_by(experiment: str, *filters: str) -> dict[str, list[str]]:
    """Returns the ids of the traces that each filter finds."""
    find = lambda text: mlflow.search_traces(locations=[experiment], filter_string=text, return_type="list")  # noqa: E731
    return {text: [trace.info.trace_id for trace in find(text)] for text in filters}


def rows(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of a data frame of traces."""
    return [_row(row) for row in frame.to_dict("records")]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Parses the JSON of the trace in a row."""
    return row | ({"trace": json.loads(row["trace"])} if isinstance(row.get("trace"), str) else {})
