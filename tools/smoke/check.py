"""A check: a question about a deployed stack, and the meaning of each possible answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Verdicts of an answer: the project relies on it, the project relies on a different answer, or the
#: answer is inconclusive.
EXPECTED, DIFFERS, OPEN = "as expected", "differs", "undecided"

#: Observations as JSON, without a judgement, and without information about the account.
Facts = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A possible answer."""

    verdict: str
    means: str


class NotAsked(Exception):
    """The check cannot run. The message has the reason."""


#: Answers that every check can have.
ALWAYS = {
    "not asked": Outcome(OPEN, "The check could not run. The observations include the reason."),
    "something else": Outcome(DIFFERS, "This answer is unexpected. Report it with the result file."),
}


@dataclass(frozen=True)
class Check:
    """A question about the stack, with the function that gathers facts and the function that judges them."""

    name: str
    asks: str
    outcomes: Mapping[str, Outcome]
    #: Queries the stack.
    ask: Callable[[Any], Facts]
    #: Returns the name of an outcome. Makes no requests, so that tests can apply it to recorded
    #: facts.
    judge: Callable[[Facts], str]

    def outcome(self, name: str) -> Outcome:
        return (ALWAYS | dict(self.outcomes))[name]


@dataclass
class Result:
    """The result of a check."""

    check: Check
    outcome: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        return self.check.outcome(self.outcome).verdict


