"""The same program of the stock client on two servers, and all that the client then reads of its traces.

The client chooses the ids and times of traces, spans and assessments. So it is given the same chance and the same clock on both sides, and nothing of
what it has chosen is replaced before comparing: only what a server chooses, which differs between two correct ones.
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

#: Runs in an experiment of its own, which is the active one; what it returns is compared, too.
Program = Callable[[str], Any]

_START_NS = 1_700_000_000_123_456_789
#: Whole milliseconds. Of others, a duration comes out one less or one more, depending on which of the requests that the client has under way at once
#: came last: from the client's own, or from when the root begins and ends.
_TICK_NS = 7_000_000
_DIFFERENCES_SHOWN = 20

#: Servers draw the ids of runs, assessments, datasets and their records, and the digest of a dataset; the client draws that of a prediction anew each time.
_DRAWN = re.compile(
    r"(?<![-\w])(?P<kind>a-|dr?-|)[0-9a-f]{32}(?!\w)|(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_DIGEST = re.compile(r"[0-9a-f]{8}")
_KINDS = {"a-": "assessment", "d-": "dataset", "dr-": "record", "": "run"}
_EXPERIMENTS = {"experiment_id"}
_SIZES = {"mlflow.trace.sizeBytes": re.compile(r"^\d+$"), "mlflow.trace.sizeStats": re.compile(r"(?<=\"total_size_bytes\": )\d+")}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class TickingClock:
    """In place of the module `time`: it goes on by a tick whenever it is read."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def time_ns(self) -> int:
        return _START_NS + next(self._ticks) * _TICK_NS

    def time(self) -> float:
        return self.time_ns() / 1e9


class Names:
    """Names for what a server has chosen: ids by their number in order of appearance, and times since the program began."""

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
            # The client counts the experiment's id, too, which is as long as a server makes it.
            return _SIZES[key].sub(lambda size: str(int(size[0]) - len(self._experiment)), text)
        if _TIME.fullmatch(text) and self._is_of_server(datetime.fromisoformat(text).timestamp() * 1000):
            return "<time of the server>"
        if key == "digest" and _DIGEST.fullmatch(text):
            return "<digest>"
        return _DRAWN.sub(self._name, text)

    def _is_of_server(self, ms: float) -> bool:
        # Answers may have whole seconds.
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
        """Run a program on both; what it returns and all that is then read has to be the same."""
        reference, subject = (self._run(side, name, program) for side in self._sides)
        found = [str(difference) for difference in compare_values(name, reference, subject)]
        assert not found, f"{len(found)} differences:\n" + "\n".join(found[:_DIFFERENCES_SHOWN])

    def _run(self, side: Side, name: str, program: Program) -> Any:
        mlflow.set_tracking_uri(side.url)
        # The same place on both sides: a client that uploads something does so itself.
        artifacts = (self._directory / "artifacts").as_uri()
        experiment = MlflowClient(side.url).create_experiment(f"{name} {self._directory}", artifact_location=artifacts)
        mlflow.set_experiment(experiment_id=experiment)
        names = Names(experiment)
        self._set_clocks()
        before = random.getstate()
        # Another for each test: servers are shared.
        random.seed(f"{name} {self._directory.name}")
        try:
            returned = program(experiment)
        finally:
            random.setstate(before)
        mlflow.flush_trace_async_logging()
        read = {"returned": returned, "read": everything(experiment)}
        assert read["read"]["found"], "a program without traces compares nothing"
        return names.apply(read)

    def _set_clocks(self) -> None:
        # Two, because an evaluation judges one answer while it asks for the next.
        spans, assessments = TickingClock(), TickingClock()
        self._patch.setattr("opentelemetry.sdk.trace.time_ns", spans.time_ns)
        self._patch.setattr("mlflow.entities.span_event.time", spans)
        self._patch.setattr("mlflow.entities.assessment.time", assessments)


def everything(experiment: str) -> dict[str, Any]:
    """All traces of an experiment, by each of the ways in which the client reads them."""
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
    """A trace in all its forms."""
    info = trace.info
    return {
        "dict": trace.to_dict(),
        # An object: the order of what a protobuf map holds is nobody's choice.
        "json": json.loads(trace.to_json()),
        "row": _row(trace.to_pandas_dataframe_row()),
        "figures": [str(info.state), info.token_usage, info.cost, info.request_preview, info.response_preview],
        "spans": [
            [span.name, span.span_type, span.inputs, span.outputs, span.attributes, str(span.status), span.parent_id]
            for span in trace.data.spans
        ],
    }


def found_by(experiment: str, *filters: str) -> dict[str, list[str]]:
    """The ids of the traces that each filter finds."""
    find = lambda text: mlflow.search_traces(locations=[experiment], filter_string=text, return_type="list")  # noqa: E731
    return {text: [trace.info.trace_id for trace in find(text)] for text in filters}


def rows(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame of traces."""
    return [_row(row) for row in frame.to_dict("records")]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A trace in a row is a text of JSON."""
    return row | ({"trace": json.loads(row["trace"])} if isinstance(row.get("trace"), str) else {})
