"""Running a scenario against two servers."""

import dataclasses
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.compare.differences import Difference, describe, differences
from tests.compare.placeholders import Placeholders
from tests.compare.scenario import Scenario, Step
from tests.support.http import Answer, Request, Side

_MOST_PAGES = 100
_NOT_CAPTURED = "nothing-was-captured"

#: Enough for the threads of the generator, each of which has a request to both sides under way.
_SENDERS = 16

Excuse = Callable[[str, Difference, Answer, Answer], bool]


@dataclass
class Player:
    """One side in one scenario: the server, its variables, and the names of what it has chosen."""

    side: Side
    variables: dict[str, Any]
    placeholders: Placeholders = field(default_factory=Placeholders)

    def named(self, answer: Answer) -> Answer:
        """The answer as it is compared."""
        if answer.status == 200:
            self.placeholders.learn(answer.body)
        return dataclasses.replace(answer, body=self.placeholders.apply(answer.body))

    def capture(self, wanted: dict[str, str], answer: Answer) -> list[str]:
        """Remember parts of an answer; returns the names of what was not there."""
        missing = []
        for name, path in wanted.items():
            try:
                self.variables[name] = _at(answer.body, path)
            except (KeyError, IndexError, TypeError):
                self.variables[name] = _NOT_CAPTURED
                missing.append(name)
        return missing


class Runner:
    """Plays steps on both sides and reports the differences nobody excused. May be used by several threads."""

    def __init__(self, reference: Side, subject: Side, variables: dict[str, Any], excuse: Excuse = lambda *_: False):
        self._reference = Player(reference, dict(variables))
        self._subject = Player(subject, dict(variables))
        self._excuse = excuse
        self._senders = ThreadPoolExecutor(_SENDERS)
        self._statuses: list[int] = []

    @property
    def requests(self) -> int:
        """How many requests each side has got."""
        return len(self._statuses)

    @property
    def statuses(self) -> Counter[int]:
        """How often the reference has given which status."""
        return Counter(self._statuses)

    def play(self, step: Step) -> Iterator[str]:
        """Send a step's request to both sides; one readable text per page that differs."""
        requests = first = [step.request(player.variables) for player in self._players]
        pages: list[list[Answer]] = []
        for _ in range(_MOST_PAGES):
            _let_the_clock_tick()
            sent = [self._senders.submit(player.side.send, request)
                    for player, request in zip(self._players, requests)]
            answers = [answer.result() for answer in sent]
            self._statuses.append(answers[0].status)
            pages.append(answers)
            if not step.join_pages:
                yield from self._compare(step, requests[0], answers)
            tokens = [_next_page(answer) for answer in answers]
            if not (step.follow_pages or step.join_pages) or None in tokens:
                break
            requests = [_on_page(request, token) for request, token in zip(requests, tokens)]
        else:
            yield f"{step.name}\n    the pages never end"
        if step.join_pages:
            yield from self._compare(step, first[0], [_joined(side) for side in zip(*pages)])

    @property
    def _players(self) -> tuple[Player, Player]:
        return self._reference, self._subject

    def _compare(self, step: Step, request: Request, answers: list[Answer]) -> Iterator[str]:
        disorder = [
            Difference(f"{player.side.name}.{name}", "<in order>", "<not in order>")
            for player, answer in zip(self._players, answers)
            for name, keys in step.in_order.items()
            if not _is_in_order(answer, name, keys)
        ]
        named = [player.named(answer) for player, answer in zip(self._players, answers)]
        named = [_sorted_lists(answer, step.unordered) for answer in named]
        found = disorder + [
            difference
            for difference in differences(*named)
            if not self._excuse(step.name, difference, *named)
        ]
        if missing := self._reference.capture(step.capture, answers[0]):
            raise ValueError(f"{step.name}: the reference's answer has no {missing}: {answers[0]}")
        found += [Difference(f"capture.{name}", "<found>", "<missing>")
                  for name in self._subject.capture(step.capture, answers[1])]
        if found:
            listed = "\n    ".join(str(difference) for difference in found)
            yield f"{step.name}\n    {describe(request)}\n    {listed}"


def run(scenario: Scenario, reference: Side, subject: Side, excuse: Excuse) -> tuple[list[str], int]:
    """Play a scenario; returns a readable text per difference and the number of requests."""
    variables = {"unique": f"{scenario.name}-{uuid.uuid4().hex[:8]}", **scenario.variables}
    runner = Runner(reference, subject, variables, excuse)
    reports = [f"{scenario.name} / {report}" for step in scenario.steps for report in runner.play(step)]
    return reports, runner.requests


def _let_the_clock_tick() -> None:
    """Wait for the next millisecond, so that two steps never happen at the same time for a server.

    Times of creation decide orders; with equal ones the server may choose, and two servers would differ.
    """
    start = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= start:
        time.sleep(0.0002)


def _next_page(answer: Answer) -> str | None:
    return answer.body.get("next_page_token") if isinstance(answer.body, dict) else None


def _on_page(request: Request, token: str) -> Request:
    """The same request for the following page; the token goes where the other parameters are."""
    if request.body is None:
        return dataclasses.replace(request, query=request.query | {"page_token": token})
    body = json.loads(request.body) | {"page_token": token}
    return Request.of_json(request.method, request.path, body, request.headers)


def _sorted_lists(answer: Answer, unordered: dict[str, str]) -> Answer:
    """Sort the lists a step declares to have no order between the values of some field (`*`: the whole item)."""
    if not isinstance(answer.body, dict):
        return answer
    body = dict(answer.body)
    for name, by in unordered.items():
        if name in body:
            body[name] = sorted(body[name], key=lambda item: repr(item) if by == "*" else repr(_at(item, by)))
    return dataclasses.replace(answer, body=body)


def _joined(pages: Sequence[Answer]) -> Answer:
    """Several pages as one: their lists one after another, and how long each was."""
    if any(page.status != 200 or not isinstance(page.body, dict) for page in pages):
        return next(page for page in pages if page.status != 200 or not isinstance(page.body, dict))
    body: dict[str, Any] = dict(pages[-1].body)
    for page in pages[-2::-1]:
        body |= {name: value + body.get(name, []) for name, value in page.body.items() if isinstance(value, list)}
    body["pages"] = [sum(len(value) for value in page.body.values() if isinstance(value, list)) for page in pages]
    return dataclasses.replace(pages[-1], body=body)


def _is_in_order(answer: Answer, name: str, keys: list[str]) -> bool:
    """Whether a list is sorted by what the server has chosen, like ids; a key with `-` in front is descending."""
    items = answer.body.get(name, []) if isinstance(answer.body, dict) else []
    expected = list(items)
    for key in reversed(keys):
        expected.sort(key=lambda item: _at(item, key.lstrip("-")), reverse=key.startswith("-"))
    return items == expected


def _at(value: Any, path: str) -> Any:
    """`runs.0.info.run_id` inside nested objects and lists, and inside JSON in a text."""
    for part in path.split("."):
        value = json.loads(value) if isinstance(value, str) else value
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
