"""Random requests about a domain of the API: what the domains have in common."""

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.compare.scenario import Step

#: Texts that are names, owners, descriptions, labels, or values of tags.
TEXTS = ["alpha", "Alpha", "ALPHA", "beta", "a b", " padded ", "it's", "100%", "a_b", "a/b", "#x", "$x", "a\\b", "\n"]
TEXTS += ["é", "e\u0301", "É", "ß", "SS", "İ", "ı", "ǆ", "Σς", "日本", "😀", "\u3000wide\u3000", "\u200b", "\x1funit", "\u00a0", "\ufeff"]
TEXTS += ["x" * 250, "é" * 251, "5", "null", "true", "[]", "{}", "<b>", "a\tb", "-", ".", "..", "%2F", "?"]
#: Values that have the wrong type or size for most fields.
_WRONG = [None, "", " ", "x", 5, 0, -1, 2.5, True, False, [], {}, [None], [5], ["x"], {"a": 1}, "y" * 300, 2**31, 2**63, "555555555"]

_ODDITIES = ["remove", "replace", "replace", "replace", "add", "whole"]


def spoiled(body: dict[str, Any], randomness: random.Random) -> Any:
    """Returns the body with one mistake: a field that is missing, unknown, or of a wrong type or
    size, or a body that is not an object.
    """
    body = copy.deepcopy(body)
    holder: Any = body
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = randomness.choice(keys) if keys else None
        below = holder[key] if key is not None else None
        if not (isinstance(below, (dict, list)) and below and randomness.random() < 0.6):
            break
        holder = below
    match randomness.choice(_ODDITIES):
        case "remove" if key is not None:
            del holder[key]
        case "replace" if key is not None:
            holder[key] = randomness.choice(_WRONG)
        case "whole" if randomness.random() < 0.3:
            return randomness.choice([[], 5, "x", None, True, [body]])
        case _ if isinstance(holder, dict):
            holder[randomness.choice(["unknown", "Name", "", "name ", "é"])] = randomness.choice(_WRONG)
        case _:
            holder.append(randomness.choice(_WRONG))
    return body


def some(fields: dict[str, Any], randomness: random.Random, share: float = 0.5) -> dict[str, Any]:
    """Returns a random part of the fields."""
    return {name: value for name, value in fields.items() if randomness.random() < share}


class Requests:
    """A random sequence of requests about one domain.

    Subclasses implement `begin`, which yields the steps that create what the requests are about, and
    `operations`, the weights and functions of the requests. The responses of requests that may fail
    set the variables of `slots`, which begin with ids that do not exist.
    """

    #: The path of the domain after `/api/3.0/mlflow/`.
    domain: str
    #: Ids of entities by the beginning of their variables' names.
    slots: dict[str, str] = {}
    _SLOTS = 6

    def __init__(self, randomness: random.Random):
        self.random = randomness

    def variables(self) -> dict[str, Any]:
        """Returns the variables at the beginning."""
        return {f"{name}{number}": missing for name, missing in self.slots.items() for number in range(self._SLOTS)}

    def begin(self) -> Iterator[Step]:
        """Yields the steps before the random ones, all of which succeed."""
        yield from ()

    def end(self) -> Iterator[Step]:
        """Yields the steps after the random ones. They remove what is not in an experiment."""
        yield from ()

    def operations(self) -> dict[Any, int]:
        """Returns functions that create a request, with their weights."""
        raise NotImplementedError

    def random_steps(self, count: int) -> Iterator[Step]:
        """Yields a number of random requests."""
        operations = self.operations()
        for _ in range(count):
            make = self.random.choices(list(operations), list(operations.values()))[0]
            yield make()

    def slot(self, name: str) -> str:
        """Returns the variable of an entity, which may exist, be deleted, or never have existed."""
        return f"{name}{self.random.randrange(self._SLOTS)}"

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def maybe(self, share: float) -> bool:
        return self.random.random() < share

    def spoiled_at_times(self, body: dict[str, Any], share: float = 0.3) -> Any:
        return spoiled(body, self.random) if self.maybe(share) else body

    def get(self, path: str, query: dict[str, Any], **more: Any) -> Step:
        if self.maybe(0.04):
            query = query | {"unknown": "x"}
        return Step(f"GET {path}", "GET", self.address(path), query={key: value for key, value in query.items() if value is not None}, **more)

    def send(self, method: str, path: str, body: Any, share: float = 0.3, **more: Any) -> Step:
        """Returns a request with a JSON body, which is spoiled with the given probability."""
        body = self.spoiled_at_times(body, share)
        return Step(f"{method} {path}", method, self.address(path), json=body, has_json=True, may_fail=True, **more)

    def pages(self) -> dict[str, Any]:
        """Returns the arguments of a list of pages, and whether all pages are requested."""
        if self.maybe(0.5):
            return {}
        usual, odd = ["1", "2", "3", 100, 1000], ["0", "-1", "x", "", "1001", "50001", "2.0", " 2 ", "1e1", "+2", "1_0", "99999999999999999999"]
        results = self.random.choice(odd if self.maybe(0.25) else usual)
        token = self.random.choice([None] * 15 + ["x", "", "e30=", "é", "bnVsbA==", "W10="])
        return {"max_results": results, "page_token": token}

    def address(self, path: str) -> str:
        prefix = "/ajax-api" if self.maybe(0.1) else "/api"
        return f"{prefix}/3.0/mlflow/{self.domain}{path}"


class Registry(Requests):
    """Requests about entities that belong to no experiment, with icons, versions, and filters."""

    def icons(self) -> Any:
        sources = ["https://8.8.8.8/i.png"] * 30 + ["http://8.8.8.8/i", "https://10.0.0.1/i", "https://[::1]/i", "https://8.8.8.8:99999/"]
        sources += ["data:image/png;base64,AA", " https://8.8.8.8/ ", "", "https:///x", "HTTPS://8.8.4.4/"]
        fields = {
            "mimeType": self.random.choice(["image/png", " IMAGE/PNG ", "image/svg+xml", "image/webp", None] * 3 + ["text/plain", ""]),
            "sizes": self.random.choice([["48x48"], [], ["any", "1x1"], None] * 3 + ["48x48"]),
            "theme": self.random.choice(["light", "dark", "x", "", None]),
            "extra": self.random.choice([1, None, {"a": [1]}, "x"]),
            "source": self.random.choice(["server", "x"] * 4 + ["version"]),
        }
        return [{"src": self.random.choice(sources)} | some(fields, self.random, 0.25) for _ in range(self.random.choice([0, 1, 1, 2]))]

    def texts(self) -> dict[str, Any]:
        return {"description": self.random.choice([*TEXTS, None, ""]), "icons": self.random.choice([self.icons(), None, []])}

    def filter(self, keys: list[str], values: list[str], first: str | None) -> str | None:
        """Returns a filter of up to two comparisons after the first."""
        comparisons = [self._comparison(keys, values) for _ in range(self.random.choice([0, 0, 1, 1, 1, 2]))]
        parts = comparisons if first is None else [first, *comparisons]
        joint = self.random.choice([" AND "] * 8 + [" and ", "  AND  ", " OR ", ", "])
        return joint.join(parts) or None

    def _comparison(self, keys: list[str], values: list[str]) -> str:
        key = self.random.choice(keys)
        key = self.random.choice([key] * 8 + [f"`{key}`", f"attributes.{key}", key.upper(), f'"{key}"'])
        rare = ["LIKE", "ILIKE", "IN", "NOT IN", ">", "<", ">=", "<=", "like", "in", "IS", "<>", "=="]
        comparator = self.random.choice(["=", "!=", "=", "!=", "LIKE", "ILIKE"] if self.maybe(0.5) else rare)
        return f"{key} {comparator} {self.random.choice(values)}"

    def order(self, keys: list[str]) -> Any:
        orders = [self.random.choice([key, f"{key} DESC", f"{key} ASC", f"`{key}`", f"{key} desc", f" {key} "]) for key in keys]
        orders += ["", "x", "name x", "name DESC ASC"]
        return self.random.choice([None, None, self.random.choice(orders), self.random.sample(orders, 2)])

    def find(self, name: str, query: dict[str, Any]) -> Step:
        """Returns a search of the whole registry."""
        query = {key: value for key, value in query.items() if value is not None}
        return Step(name, "GET", self.address(""), query=query, follow_pages=True)

    def without_body(self, method: str, path: str) -> Step:
        return Step(f"{method} {path}", method, self.address(path))
