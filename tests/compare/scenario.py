"""Reads scenario files, which are YAML, into lists of steps.

A step is one request, or a family of requests that differ in some variables. README.md describes
the format.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tests.support.http import Request

_METHODS = ("get", "post", "put", "patch", "delete")
_PREFIX = "/api/2.0/mlflow/"
_VARIABLE = re.compile(r"\$\{([\w.-]+)\}")
_LABEL_CHARACTERS = 60


@dataclass(frozen=True)
class Step:
    """A request that is sent to both sides. Its strings may contain `${variables}`.

    The steps of one entry in a file are a family, whose name is that of the steps without the case.
    Steps with `sampled` are part of the sample that is run when time is short. The sample of a
    family with `few` does not contain all of its values.

    With `may_fail`, a response may lack the values of `capture`, whose variables then stay as they
    are.
    """

    name: str
    method: str
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    json: Any = None
    has_json: bool = False
    body: str | None = None
    encoding: str = "utf-8"
    headers: dict[str, str | None] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    capture: dict[str, str] = field(default_factory=dict)
    unordered: dict[str, str] = field(default_factory=dict)
    in_order: dict[str, list[str]] = field(default_factory=dict)
    follow_pages: bool = False
    join_pages: bool = False
    sampled: bool = True
    few: bool = False
    may_fail: bool = False
    family: str = ""

    def request(self, variables: dict[str, Any]) -> Request:
        """Returns the request for one side, given that side's values of the variables."""
        known = dict(variables)
        for name, value in self.variables.items():
            known[name] = substitute(value, known)
        body = self._body(known)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        headers |= self.headers
        return Request(
            self.method,
            substitute(self.path, known),
            substitute(self.query, known),
            body,
            {name: substitute(value, known) for name, value in headers.items() if value is not None},
        )

    def _body(self, known: dict[str, Any]) -> bytes | None:
        if self.has_json:
            return json.dumps(substitute(self.json, known)).encode()
        return None if self.body is None else substitute(self.body, known).encode(substitute(self.encoding, known))


@dataclass(frozen=True)
class Scenario:
    """The steps of one file.

    A scenario with `fresh_servers` has two servers of its own. A `slow` scenario has no sample.
    """

    name: str
    about: str
    fresh_servers: bool
    variables: dict[str, Any]
    steps: list[Step]
    slow: bool = False

    def sample(self) -> "Scenario":
        """Returns the sample, which is run when time is short."""
        return replace(self, steps=[step for step in self.steps if step.sampled])


def load(file: Path) -> Scenario:
    """Reads a scenario file."""
    document = yaml.load(file.read_text(), _Loader)
    unknown = set(document) - {"about", "fresh_servers", "slow", "variables", "steps"}
    if unknown:
        raise ValueError(f"{file.name}: unknown keys {sorted(unknown)}")
    steps = [step for fields in document["steps"] for step in _expand(fields)]
    fresh_servers, slow = (document.get(name, False) for name in ("fresh_servers", "slow"))
    return Scenario(file.stem, document["about"], fresh_servers, document.get("variables", {}), steps, slow)


def substitute(value: Any, variables: dict[str, Any]) -> Any:
    """Substitutes variables. A string that consists of `${name}` becomes the value itself, which
    may be of any type.
    """
    if isinstance(value, dict):
        return _substitute_in_object(value, variables)
    if isinstance(value, list):
        return [substitute(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    if whole := _VARIABLE.fullmatch(value):
        return variables[whole[1]]
    return _VARIABLE.sub(lambda found: str(variables[found[1]]), value)


def _substitute_in_object(fields: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """Substitutes variables in an object. The key `...` stands for all fields of the object that is
    its value.
    """
    result = {}
    for key, value in fields.items():
        value = substitute(value, variables)
        if key == "...":
            result |= value
        else:
            result[substitute(key, variables)] = value
    return result


def _expand(fields: dict[str, Any]) -> Iterator[Step]:
    """Yields one step per combination of `each`, or one per entry of `cases`, whose index is
    `${case}`.

    Each step is followed by the steps in `then`, with the same variables. With `sample: 4`, every
    fourth combination is in the sample. Combinations are selected along the diagonals, so that
    every value of each variable occurs. With `few: 4`, the first of every four combinations is in
    the sample, so that some values do not occur.
    """
    fields = dict(fields)
    method = next((method for method in _METHODS if method in fields), None)
    if method is None:
        raise ValueError(f"a step needs one of {_METHODS}: {fields}")
    path = fields.pop(method)
    each, cases, then = fields.pop("each", None), fields.pop("cases", None), fields.pop("then", [])
    sample, few, places = fields.pop("sample", 1), fields.pop("few", 1), None
    if sample > 1 and few > 1:
        raise ValueError(f"an entry has `sample` or `few`, not both: {fields}")
    if each is not None:
        cases = [dict(zip(each, values)) for values in itertools.product(*each.values())]
        places = [sum(place) for place in itertools.product(*(range(len(values)) for values in each.values()))]
    name = fields.pop("name", f"{method.upper()} {path}")
    step = {
        "family": name,
        "method": method.upper(),
        "path": path if path.startswith("/") else _PREFIX + path,
        "has_json": "json" in fields,
        "few": few > 1,
        **fields,
    }
    if cases is None:
        yield Step(name=name, **step)
        yield from itertools.chain.from_iterable(map(_expand, then))
    for position, case in enumerate(cases or []):
        variables = {**case, "case": position}
        sampled = (position if places is None else places[position]) % sample == 0 and position % few == 0
        yield Step(name=f"{name} [{_label(case)}]", variables=variables, sampled=sampled, **step)
        for following in itertools.chain.from_iterable(map(_expand, then)):
            yield replace(following, name=f"{following.name} [{_label(case)}]", variables=variables, sampled=sampled, few=few > 1)


def _label(case: dict[str, Any]) -> str:
    values = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in case.values()]
    label = " | ".join(values)
    return label if len(label) <= _LABEL_CHARACTERS else f"{label[:_LABEL_CHARACTERS]}… {len(label)}"


class _Loader(yaml.CSafeLoader):
    """A loader that uses libyaml, which takes a third of the time.

    It supports `!repeat [text, count]` for long strings and `!many {count, item}` for long lists.
    """


def _repeat(loader: _Loader, node: yaml.SequenceNode) -> str:
    text, count = loader.construct_sequence(node)
    return text * count


def _many(loader: _Loader, node: yaml.MappingNode) -> list[Any]:
    """Returns `count` copies of `item`, in which `${i}` is replaced by the index.

    A string that consists of `${i}` becomes a number.
    """
    fields = loader.construct_mapping(node, deep=True)
    return [_with_index(fields["item"], index) for index in range(fields["count"])]


def _with_index(value: Any, index: int) -> Any:
    if isinstance(value, dict):
        return {_with_index(key, index): _with_index(item, index) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_index(item, index) for item in value]
    if value == "${i}":
        return index
    return value.replace("${i}", str(index)) if isinstance(value, str) else value


_Loader.add_constructor("!repeat", _repeat)
_Loader.add_constructor("!many", _many)
