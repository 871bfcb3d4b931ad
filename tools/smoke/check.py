"""What a check is: a question to a deployed stack, and what each answer to it would mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The project counts on this answer; or on another one; or the answer decides nothing.
EXPECTED, DIFFERS, OPEN = "as expected", "differs", "undecided"

#: What was found out, as JSON: no judgement, and nothing of who asked.
Facts = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A possible answer."""

    verdict: str
    means: str


class NotAsked(Exception):
    """The question could not be put; the message says why."""


#: Answers that any check may have.
ALWAYS = {
    "not asked": Outcome(OPEN, "The question could not be put here. The reason is among what came."),
    "something else": Outcome(DIFFERS, "Nobody has thought of this answer. Report it with the result file."),
}


@dataclass(frozen=True)
class Check:
    """A question, how it is put, and how what came is judged."""

    name: str
    asks: str
    outcomes: Mapping[str, Outcome]
    #: Asks the stack.
    ask: Callable[[Any], Facts]
    #: The name of one of the outcomes. It asks nobody, so that tests can hold it against recorded facts.
    judge: Callable[[Facts], str]

    def outcome(self, name: str) -> Outcome:
        return (ALWAYS | dict(self.outcomes))[name]


@dataclass
class Result:
    """What came of a check."""

    check: Check
    outcome: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        return self.check.outcome(self.outcome).verdict


