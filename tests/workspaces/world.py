"""Two servers with workspaces, one of which is stock MLflow, and requests that are sent to both."""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.compare.differences import differences
from tests.compare.placeholders import Placeholders
from tests.compare.times import Clock
from tests.support.http import Answer, Request, Side
from tests.support.pair import FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT
from tests.support.servers import ServerlessMlflow, StockMlflow, subject_is_stock_mlflow

V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
WORKSPACES = f"{V3}/workspaces"
HEADER = "X-MLFLOW-WORKSPACE"
#: Both servers store artifacts themselves, and clients send them through the server.
_SERVED = "mlflow-artifacts:/"
#: Artifacts of the default workspace have the same location as without workspaces, so that enabling
#: workspaces does not move them.
_OF_DEFAULT = (f"{_SERVED}workspaces/default/", _SERVED)
#: The id of an experiment, which no other number in a response resembles.
_NUMBER = re.compile("[0-9]{3,}")
_ASSESSMENT = re.compile("a-[0-9a-f]{32}")


@dataclass(frozen=True)
class Step:
    """A request in a workspace, or without a workspace header. `$name` in it refers to a value from
    an earlier response.
    """

    workspace: str | None
    method: str
    path: str
    #: The query of a GET, and otherwise the body: an object, or raw bytes.
    content: Any = None
    #: Names, and the position of each value in the response, such as `run.info.run_id`.
    keep: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        content = "" if self.content is None else f" {self.content!r}"
        text = f"{self.workspace!r} {self.method} {self.path}{content}"
        return text if len(text) < 400 else f"{text[:300]}… ({len(text)} characters)"


def ask(workspace: str | None, method: str, path: str, content: Any = None, headers: Mapping[str, str] | None = None, **keep: str) -> Step:
    """Creates a step. `keep` names values of its response for later steps."""
    return Step(workspace, method, path, content, keep, headers or {})


@dataclass(frozen=True)
class Accepted:
    """Steps whose responses may differ, with patterns for the whole text of each response, and the
    reason.
    """

    steps: str
    stock: str
    ours: str
    reason: str

    def covers(self, step: Step, stock: Answer, ours: Answer) -> bool:
        """Returns whether this entry accepts the responses to a step."""
        pairs = ((self.steps, str(step)), (self.stock, _text(stock)), (self.ours, _text(ours)))
        return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in pairs)


def _text(answer: Answer) -> str:
    body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body, sort_keys=True)
    return f"{answer.status} {body}"


class Player:
    """One of the two servers, and the values that were kept from its responses."""

    def __init__(self, side: Side, clock: Clock):
        self.side = side
        self.names: dict[str, str] = {}
        self._placeholders = Placeholders(clock)

    def play(self, step: Step) -> Answer:
        """Sends a step's request. Returns the response with placeholders for values that the server
        has chosen.
        """
        answer = self.side.send(self._request(step))
        for name, place in step.keep.items():
            self.names[name] = str(_at(answer, place, step))
        if answer.status < 300:
            self._placeholders.learn(answer.body)
        return dataclasses.replace(answer, body=self._placeholders.apply(self._neutral(answer.body)))

    def _neutral(self, value: Any) -> Any:
        """Removes differences between the servers that placeholders do not cover."""
        if isinstance(value, dict):
            return {key: self._neutral(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._neutral(item) for item in value]
        if not isinstance(value, str):
            return value
        for name, kept in self.names.items():
            if _NUMBER.fullmatch(kept):
                value = re.sub(rf"(?<![0-9a-f]){kept}(?![0-9a-f])", f"<{name}>", value)
        return _ASSESSMENT.sub("<assessment>", value.replace(*_OF_DEFAULT))

    def _request(self, step: Step) -> Request:
        headers = {**self._filled(step.headers)}
        if step.workspace is not None:
            headers[HEADER] = step.workspace
        path = self._filled(step.path)
        if isinstance(step.content, bytes):
            return Request(step.method, path, {}, step.content, headers)
        content = self._filled(step.content)
        if step.method == "GET":
            return Request(step.method, path, content or {}, None, headers)
        body = None if content is None else json.dumps(content).encode()
        return Request(step.method, path, {}, body, {"Content-Type": "application/json", **headers})

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        for name in sorted(self.names, key=len, reverse=True):
            value = value.replace(f"${name}", self.names[name])
        return value


def _at(answer: Answer, place: str, step: Step) -> Any:
    found = answer.body
    try:
        for part in place.split("."):
            found = found[int(part) if isinstance(found, list) else part]
    except (KeyError, IndexError, TypeError):
        raise AssertionError(f"{step}: {place} is missing in {answer.status} {answer.body}") from None
    return found


@dataclass
class Pair:
    """Stock MLflow and this project's server, each with its own data."""

    stock: Player
    ours: Player
    clock: Clock

    def play(self, steps: list[Step], accepted: list[Accepted], is_sample: bool = False) -> list[str]:
        """Returns the differences that are not accepted, and the accepted ones that did not occur.
        In a sample, accepted differences need not occur.
        """
        wrong, used = [], set()
        for step in steps:
            self.clock.tick()
            stock, ours = self.stock.play(step), self.ours.play(step)
            found = differences(stock, ours)
            if not found:
                continue
            excuse = next((entry for entry in accepted if entry.covers(step, stock, ours)), None)
            if excuse is None:
                wrong.append("\n    ".join([str(step), *map(str, found)]))
            else:
                used.add(excuse)
        # Two stock servers must not differ at all.
        unused = [] if is_sample or subject_is_stock_mlflow() else [entry for entry in accepted if entry not in used]
        return wrong + [f"accepted, but no step has this difference: {entry}" for entry in unused]


@contextmanager
def both(directory: Path) -> Iterator[Pair]:
    """Starts both servers, with workspaces and without data."""
    stock = _stock(directory / "stock", FIRST_EXPERIMENT_OF_REFERENCE)
    try:
        ours = _subject(directory / "ours")
        try:
            clock = Clock()
            sides = Side("stock", stock.url), Side("ours", ours.url)
            _skip_numbers(sides[1])
            yield Pair(*(Player(side, clock) for side in sides), clock)
        finally:
            ours.stop()
    finally:
        stock.stop()


def _stock(directory: Path, first_experiment_id: int) -> StockMlflow:
    served = ("--artifacts-destination", str(directory / "artifacts"))
    return StockMlflow(directory, first_experiment_id, artifact_options=served, options=("--enable-workspaces",))


def _subject(directory: Path) -> StockMlflow | ServerlessMlflow:
    if subject_is_stock_mlflow():
        return _stock(directory, FIRST_EXPERIMENT_OF_SUBJECT)
    return start_ours(directory)


def _skip_numbers(side: Side) -> None:
    """Skips ids until those of experiments have three digits, so that they cannot be confused with
    other numbers in a response.
    """
    assert side.send(Request.of_json("POST", WORKSPACES, {"name": "skipped"})).status == 201
    for number in range(100):
        headers = {"Content-Type": "application/json", HEADER: "skipped"}
        made = side.send(Request.of_json("POST", f"{V2}/experiments/create", {"name": str(number)}, headers))
        assert made.status == 200, made
    assert side.send(Request("DELETE", f"{WORKSPACES}/skipped?mode=CASCADE")).status == 204


def start_ours(directory: Path, *options: str, workspaces: bool = True) -> ServerlessMlflow:
    """Starts this project's server with or without workspaces. It stores artifacts itself."""
    mode = ("--workspaces",) if workspaces else ()
    return ServerlessMlflow(directory, options=(*mode, "--no-ui", *options), artifact_root=_SERVED)


def proxied(path: str) -> str:
    """Returns the path at which the server accepts and serves a file of `mlflow-artifacts:`."""
    return f"/api/2.0/mlflow-artifacts/artifacts/{quote(path, safe='/$')}"
