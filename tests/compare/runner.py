"""Runs a scenario on two servers."""

import dataclasses
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.compare.differences import Difference, describe, differences
from tests.compare.placeholders import Placeholders
from tests.compare.scenario import Scenario, Step
from tests.compare.times import Clock
from tests.support.http import Answer, Request, Side

_MOST_PAGES = 100
_NOT_CAPTURED = "nothing-was-captured"

#: Number of threads that send requests. Enough for the generator's threads, each of which sends a
#: request to both sides.
_SENDERS = 16

#: A function that receives a step's name, the differences between the responses, and both
#: responses, and returns the differences that are not accepted.
Excuse = Callable[[str, list[Difference], Answer, Answer], list[Difference]]


def excuse_nothing(_step: str, found: list[Difference], _reference: Answer, _subject: Answer) -> list[Difference]:
    """Accepts no differences."""
    return found


@dataclass
class Player:
    """One side in a scenario: the server, its variables, and the names of values that it has
    chosen.
    """

    side: Side
    variables: dict[str, Any]
    placeholders: Placeholders

    def answered(self, step: Step, answer: Answer) -> "Answered":
        """Returns the parts of a response that are compared, and stores the values that the step
        captures.
        """
        if answer.status == 200:
            self.placeholders.learn(answer.body)
        disorder = [name for name, keys in step.in_order.items() if not _is_in_order(answer, name, keys)]
        named = dataclasses.replace(answer, body=self.placeholders.apply(answer.body))
        return Answered(_sorted_lists(named, step.unordered), disorder, self.capture(step, answer))

    def capture(self, step: Step, answer: Answer) -> list[str]:
        """Stores parts of a response in variables. Returns the names of those that the response
        does not have, but should.
        """
        missing = []
        for name, path in step.capture.items():
            try:
                self.variables[name] = _at(answer.body, path)
            except (KeyError, IndexError, TypeError, ValueError):
                if not step.may_fail:
                    self.variables[name] = _NOT_CAPTURED
                    missing.append(name)
        return missing


@dataclass(frozen=True)
class Answered:
    """A response with placeholders, the names of its lists that are not in the required order, and
    the names of missing values.
    """

    answer: Answer
    disorder: list[str]
    missing: list[str]


class Lists:
    """The lists that steps name in `unordered` and `in_order`, and those that the reference has
    returned.
    """

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()
        self._seen: set[tuple[str, str]] = set()

    def look(self, step: Step, answer: Answer) -> None:
        """Records the lists in a response. Empty lists are omitted from responses, so one response
        per family of steps is enough.
        """
        for name in {*step.unordered, *step.in_order}:
            self._named.add((step.family, name))
            if isinstance(answer.body, dict) and isinstance(answer.body.get(name), list):
                self._seen.add((step.family, name))

    def unknown(self) -> list[tuple[str, str]]:
        """Returns the steps and names of lists that no response contained."""
        return sorted(self._named - self._seen)


class Runner:
    """Plays steps on all sides, and reports the differences that are not accepted. Thread-safe.

    There may be several subjects. Each is compared with the reference, which receives each request
    once.
    """

    def __init__(self, reference: Side, *subjects: Side, variables: dict[str, Any], excuse: Excuse = excuse_nothing):
        self._clock = Clock()
        self._players = [Player(side, dict(variables), Placeholders(self._clock)) for side in (reference, *subjects)]
        self._excuse = excuse
        self._lists = Lists()
        self._senders = ThreadPoolExecutor(_SENDERS)
        self._statuses: list[int] = []

    @property
    def requests(self) -> int:
        """Returns the number of requests that each side has received."""
        return len(self._statuses)

    @property
    def statuses(self) -> Counter[int]:
        """Returns how often the reference has returned each status."""
        return Counter(self._statuses)

    def play(self, step: Step) -> Iterator[str]:
        """Sends a step's request to all sides. Yields a report for each page and subject that
        differs.
        """
        requests = first = [step.request(player.variables) for player in self._players]
        pages: list[list[Answer]] = []
        for _ in range(_MOST_PAGES):
            self._clock.tick()
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

    def unknown_lists(self) -> list[str]:
        """Describes each list that a step sorts or checks and that no response contained, which
        means that its name is wrong.
        """
        return [f"{step}\n    no answer has a list {name!r}" for step, name in self._lists.unknown()]

    def _compare(self, step: Step, request: Request, answers: list[Answer]) -> Iterator[str]:
        self._lists.look(step, answers[0])
        reference, *subjects = (player.answered(step, answer) for player, answer in zip(self._players, answers))
        if reference.missing:
            raise ValueError(f"{step.name}: the reference's answer has no {reference.missing}: {answers[0]}")
        for player, subject in zip(self._players[1:], subjects):
            found = [
                Difference(f"{side}.{name}", "<in order>", "<not in order>")
                for side, of_side in (("reference", reference), (player.side.name, subject))
                for name in of_side.disorder
            ]
            compared = differences(reference.answer, subject.answer)
            found += self._excuse(step.name, compared, reference.answer, subject.answer)
            found += [Difference(f"capture.{name}", "<found>", "<missing>") for name in subject.missing]
            if found:
                listed = "\n    ".join(str(difference) for difference in found)
                yield f"{step.name}\n    {describe(request)}\n    {listed}"


def run(scenario: Scenario, reference: Side, subject: Side, excuse: Excuse) -> tuple[list[str], int]:
    """Plays a scenario. Returns a report for each difference, and the number of requests."""
    # Contains a checksum, so that no scenario's text is a prefix of another's.
    unique = f"{scenario.name}-{zlib.crc32(scenario.name.encode()):08x}"
    variables = {"unique": unique, **scenario.variables}
    runner = Runner(reference, subject, variables=variables, excuse=excuse)
    reports = [f"{scenario.name} / {report}" for step in scenario.steps for report in runner.play(step)]
    reports += [f"{scenario.name} / {report}" for report in runner.unknown_lists()]
    return reports, runner.requests


def _next_page(answer: Answer) -> str | None:
    # Some lists end with an empty token, and others without one.
    return (answer.body.get("next_page_token") or None) if isinstance(answer.body, dict) else None


def _on_page(request: Request, token: str) -> Request:
    """Returns the request for the following page. The token is added to the body, or to the query
    if there is no body.
    """
    if request.body is None:
        return dataclasses.replace(request, query=request.query | {"page_token": token})
    body = json.loads(request.body) | {"page_token": token}
    return Request.of_json(request.method, request.path, body, request.headers)


def _sorted_lists(answer: Answer, unordered: dict[str, str]) -> Answer:
    """Sorts the lists that a step declares as unordered by a field, or by the whole item (`*`)."""
    if not isinstance(answer.body, dict):
        return answer
    body = dict(answer.body)
    for name, by in unordered.items():
        if isinstance(body.get(name), list):
            body[name] = sorted(body[name], key=lambda item: repr(item) if by == "*" else repr(_at(item, by)))
    return dataclasses.replace(answer, body=body)


def _joined(pages: Sequence[Answer]) -> Answer:
    """Joins pages to one response: concatenates their lists, and adds the length of each page."""
    if any(page.status != 200 or not isinstance(page.body, dict) for page in pages):
        return next(page for page in pages if page.status != 200 or not isinstance(page.body, dict))
    body: dict[str, Any] = dict(pages[-1].body)
    for page in pages[-2::-1]:
        body |= {name: value + body.get(name, []) for name, value in page.body.items() if isinstance(value, list)}
    body["pages"] = [sum(len(value) for value in page.body.values() if isinstance(value, list)) for page in pages]
    return dataclasses.replace(pages[-1], body=body)


def _is_in_order(answer: Answer, name: str, keys: list[str]) -> bool:
    """Returns whether a list is sorted by keys whose values the server has chosen, such as ids. A
    key that begins with `-` is descending.
    """
    items = answer.body.get(name, []) if isinstance(answer.body, dict) else []
    expected = list(items) if isinstance(items, list) else []
    for key in reversed(keys):
        expected.sort(key=lambda item: _at(item, key.lstrip("-")), reverse=key.startswith("-"))
    return items == expected


def _at(value: Any, path: str) -> Any:
    """Returns the value at a path such as `runs.0.info.run_id` in nested objects and lists, and in
    JSON strings.
    """
    for part in path.split("."):
        value = json.loads(value) if isinstance(value, str) else value
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
