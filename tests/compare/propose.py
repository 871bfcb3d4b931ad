"""Prints an entry for each difference that is not accepted: `python -m tests.compare.propose
runs-create`.

Before an entry is added to `allowed/<scenario>.yaml`, a developer has to check that this server's
behavior is right, make the patterns as narrow as the messages allow, and fill in the reason, which
is empty here.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.compare.allowed import AllowList, load_entries, text_of
from tests.compare.differences import Difference
from tests.support.pair import pair
from tests.compare.runner import run
from tests.compare.scenario import load
from tests.support.http import Answer, Side

_SCENARIOS = Path(__file__).with_name("scenarios")
_STEPS_NAMED = 6
#: Parts in which messages of one kind differ: quoted texts, lists and objects, placeholders,
#: numbers.
_PARTS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|\d+|\w+|\s+|.""", re.DOTALL
)
_WORD = re.compile(r"[^\W\d]\w*|\s+|[^\w\s'\"<]")
#: Parts of a text that a pattern must not fix: the random part of a name, and the number of a
#: placeholder, which changes if a step is added before.
_CHANGING = [(re.compile(r"-[0-9a-f]{8}\b"), "-[0-9a-f]{8}"), (re.compile(r"<([a-z][a-z ]*) \d+>"), r"<\1 \\d+>")]
_ALTERNATIVES, _LONGEST_ALTERNATIVES = 8, 200
_LONGEST_BODY = 120


@dataclass
class Proposal:
    """The steps with the same result on both sides, and the texts of their responses, from which
    the patterns are derived.
    """

    steps: list[str] = field(default_factory=list)
    texts: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))


class Collector:
    """Collects the differences that a scenario's entries do not accept."""

    def __init__(self, scenario: str):
        self._allowed = AllowList(load_entries(scenario))
        self.proposals: dict[tuple[Any, ...], Proposal] = defaultdict(Proposal)

    def excuse(self, step: str, found: list[Difference], reference: Answer, subject: Answer) -> list[Difference]:
        """Records the remaining differences and accepts them, so that the scenario continues."""
        left = self._allowed.excuse(step, found, reference, subject)
        if left and reference.status == subject.status == 200:
            for difference in left:
                values = {"reference": difference.reference, "ours": difference.subject}
                texts = {(side, "value"): text_of(value) for side, value in values.items()}
                self._note(step, difference.field, reference, subject, texts)
        elif left:
            texts = dict(_text("reference", reference)) | dict(_text("ours", subject))
            self._note(step, None, reference, subject, texts)
        return []

    def _note(self, step: str, path: str | None, reference: Answer, subject: Answer, texts: dict) -> None:
        shapes = tuple(_shape(text) for key, text in texts.items() if key[1] in ("message", "value"))
        sides = _fixed(reference, path), _fixed(subject, path)
        proposal = self.proposals[(step.partition(" [")[0], path, json.dumps(sides), shapes)]
        proposal.steps.append(step)
        for key, text in texts.items():
            proposal.texts[key].append(text)


def _fixed(answer: Answer, path: str | None) -> dict[str, Any]:
    """Returns the properties that all steps of an entry share."""
    fixed: dict[str, Any] = {"status": answer.status}
    if answer.kind != "json":
        fixed["kind"] = answer.kind
    elif answer.status >= 400 and path is None and isinstance(answer.body, dict):
        fixed["error_code"] = answer.body.get("error_code")
    return fixed


def _text(side: str, answer: Answer) -> Iterator[tuple[tuple[str, str], str]]:
    """Yields the text that is matched by a pattern."""
    if answer.kind == "json" and answer.status >= 400:
        yield (side, "message"), answer.body.get("message", "")
    elif answer.kind != "html":
        yield (side, "body"), text_of(answer.body)


def _shape(text: str) -> str:
    return "".join(part if _WORD.fullmatch(part) else "?" for part in _PARTS.findall(text))[:200]


def _pattern(texts: list[str]) -> str:
    """Returns a regular expression that matches all of these texts. Where they differ, it has
    alternatives or matches anything.
    """
    parts = [_PARTS.findall(text) for text in texts]
    if len({len(each) for each in parts}) > 1:
        return _with_changes(_either(texts))
    return _with_changes(re.sub(r"(\.\+)+", ".+", "".join(map(_either, zip(*parts)))))


def _either(texts: Iterable[str]) -> str:
    different = sorted(set(map(_escape, texts)))
    if len(different) == 1:
        return different[0]
    together = f"({'|'.join(different)})"
    return together if len(different) <= _ALTERNATIVES and len(together) <= _LONGEST_ALTERNATIVES else ".+"


def _escape(text: str) -> str:
    """Escapes a text like re.escape, but stays more readable."""
    return re.sub(r"([.\\^$*+?{}\[\]|()])", r"\\\1", text)


def _with_changes(pattern: str) -> str:
    for changing, wildcard in _CHANGING:
        pattern = changing.sub(wildcard, pattern)
    return pattern


def _begin(pattern: str) -> str:
    """Shortens a long pattern, without cutting through alternatives."""
    if len(pattern) <= _LONGEST_BODY:
        return pattern
    return re.match(rf"(?:\\.|[^\\(]){{0,{_LONGEST_BODY}}}", pattern)[0] + ".*"


def _entry(key: tuple[Any, ...], proposal: Proposal) -> str:
    """Formats an entry as in the files."""
    family, path, sides, _ = key
    named = sorted(set(proposal.steps))
    step = named[0] if len(named) == 1 else named if len(named) <= _STEPS_NAMED else f"{family} [*"
    lines = [f"- step: {_quoted(step)}", f"  steps: {len(proposal.steps)}"]
    if path is not None:
        lines.append(f"  field: {_quoted(path)}")
    for side, fixed in zip(("reference", "ours"), json.loads(sides)):
        patterns = {name: _pattern(texts) for (of, name), texts in proposal.texts.items() if of == side}
        if side == "reference" and "body" in patterns:
            patterns["body"] = _begin(patterns["body"])
        fields = (f"{name}: {_quoted(value)}" for name, value in (fixed | patterns).items())
        lines.append(f"  {side}: {{{', '.join(fields)}}}")
    return "\n".join([*lines, '  reason: ""'])


def _quoted(value: str | int | list[str]) -> str:
    """Returns a value as YAML, with as few backslashes as possible."""
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, str) and "\n" not in value and ("\\" in value or '"' in value):
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Plays the scenarios named on the command line, or all of them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("scenario", nargs="*")
    arguments.add_argument("--output", type=Path, help="directory for one file per scenario; printed by default")
    options = arguments.parse_args()
    names = options.scenario or sorted(file.stem for file in _SCENARIOS.glob("*.yaml"))
    with pair() as shared:
        for name in names:
            entries = [_entry(*item) for item in _collect(name, shared).proposals.items()]
            if entries and options.output:
                (options.output / f"{name}.yaml").write_text("\n".join(entries) + "\n")
            elif entries:
                print(f"# {name}", *entries, sep="\n")


def _collect(name: str, shared: tuple[Side, Side]) -> Collector:
    collector = Collector(name)
    scenario = load(_SCENARIOS / f"{name}.yaml")
    with pair(plain_ids=True) if scenario.fresh_servers else nullcontext(shared) as sides:
        reports, _ = run(scenario, *sides, collector.excuse)
    for report in reports:
        print(report, file=sys.stderr)
    return collector


if __name__ == "__main__":
    main()
