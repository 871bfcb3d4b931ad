"""Random searches of a random store, with valid and invalid filters and orders."""

import random

from tests.compare.random_store import CONTEXTS, DATASETS, DIGESTS, LONG_WORDS, METRICS, NUMBERS, PARAMS, STATUSES, TAGS, WORDS, Store
from tests.compare.scenario import Step

_NUMERIC_COMPARATORS = ["=", "!=", "<", "<=", ">", ">="]
_TEXT_COMPARATORS = ["=", "!=", "LIKE", "ILIKE", "like", "ilike"]
_NULL_COMPARATORS = ["IS NULL", "IS NOT NULL", "is null"]
_VIEWS = ["ACTIVE_ONLY", "DELETED_ONLY", "ALL"]
_NOISE = ["(", ")", "OR", "AND", "NOT", ";", ",", "'", '"', "`", "=", "==", "IN", "5", "NULL", "--", "x", ".", "é"]


def run_search(store: Store, randomness: random.Random) -> Step:
    """Returns a search for runs in some of the store's experiments."""
    experiments = _some_experiments(store, randomness)
    body = {
        "experiment_ids": [f"${{{name}}}" for name in experiments],
        "filter": _filter(randomness, lambda: _run_clause(store, randomness)),
        "run_view_type": randomness.choice(_VIEWS),
        "order_by": [_order(randomness, _run_orders()) for _ in range(randomness.choice([0, 0, 1, 1, 2, 3]))],
    }
    return _search("runs/search", body, randomness)


def experiment_search(store: Store, randomness: random.Random) -> Step:
    """Returns a search for experiments of the store. A condition on the name excludes those of
    other tests.
    """
    clauses = _filter(randomness, lambda: _experiment_clause(store, randomness))
    body = {
        "filter": f"name LIKE '${{unique}}%' AND {clauses}" if clauses else "name LIKE '${unique}%'",
        "view_type": randomness.choice(_VIEWS),
        "order_by": [_order(randomness, _EXPERIMENT_ORDERS) for _ in range(randomness.choice([0, 0, 1, 2]))],
    }
    return _search("experiments/search", body, randomness)


def _some_experiments(store: Store, randomness: random.Random) -> list[str]:
    """Returns only the large experiment in many cases, and otherwise a random selection."""
    if randomness.random() < 0.4:
        return store.experiments[:1]
    return randomness.sample(store.experiments, randomness.randint(1, len(store.experiments)))


def _search(path: str, body: dict, randomness: random.Random) -> Step:
    body["max_results"] = randomness.choice([1, 3, 10, 50, 1000])
    # Small pages are not followed, because most requests would be for pages of a single search.
    follow = body["max_results"] >= 10
    return Step(path, "POST", f"/api/2.0/mlflow/{path}", json=body, has_json=True, follow_pages=follow)


def _filter(randomness: random.Random, clause) -> str:
    clauses = [clause() for _ in range(randomness.choice([0, 1, 1, 1, 2, 2, 3, 4]))]
    text = randomness.choice([" AND ", " AND ", " and ", "  AND\n"]).join(clauses)
    # Messages about an invalid filter quote it, and a short experiment id in it cannot be
    # distinguished from other numbers. An unquoted run id is parsed as a name or a number,
    # depending on how the server's own ids begin.
    spoil = randomness.random() < 0.15 and "experiment_id" not in text and "run_id" not in text
    return _spoiled(text, randomness) if spoil else text


def _spoiled(text: str, randomness: random.Random) -> str:
    """Makes a filter invalid by dropping, doubling or inserting a word."""
    words = text.split(" ")
    position = randomness.randrange(len(words))
    change = randomness.randrange(3)
    if change == 0:
        del words[position]
    else:
        words.insert(position, words[position] if change == 1 else randomness.choice(_NOISE))
    return " ".join(words)


def _run_clause(store: Store, randomness: random.Random) -> str:
    kind = randomness.randrange(7)
    if kind == 6:
        field, values = randomness.choice([("name", DATASETS), ("digest", DIGESTS), ("context", CONTEXTS)])
        return f"{_entity(randomness, 'dataset', 'datasets')}.{field} {_text_condition(randomness, values)}"
    if kind == 0:
        comparator, value = randomness.choice(_NUMERIC_COMPARATORS), randomness.choice(NUMBERS)
        return f"{_entity(randomness, 'metrics', 'metric')}.{_quoted_key(METRICS, randomness)} {comparator} {value}"
    if kind in (1, 2):
        entity, keys = (("params", "param", "parameters"), PARAMS) if kind == 1 else (("tags", "tag"), TAGS)
        field = f"{_entity(randomness, *entity)}.{_quoted_key(keys, randomness)}"
        return f"{field} {_text_condition(randomness, with_null=True)}"
    if kind == 3:
        field = randomness.choice(["start_time", "end_time", "attributes.start_time", "created"])
        return f"{field} {randomness.choice(_NUMERIC_COMPARATORS)} {randomness.choice(store.times)}"
    if kind == 4:
        runs = ", ".join(f"'${{{run}}}'" for run in randomness.sample(store.runs, 3))
        return randomness.choice([f"run_id IN ({runs})", f"attributes.run_id NOT IN ({runs})"])
    field = randomness.choice(["run_name", "attributes.run_name", "status", "user_id", "attr.status", "`run name`"])
    values = STATUSES if "status" in field else WORDS
    return f"{field} {_text_condition(randomness, values)}"


def _experiment_clause(store: Store, randomness: random.Random) -> str:
    kind = randomness.randrange(4)
    if kind == 0:
        experiment = f"'${{{randomness.choice(store.experiments)}}}'"
        conditions = [f"= {experiment}", f"!= {experiment}", f"IN ({experiment})", f"NOT IN ({experiment})"]
        return f"experiment_id {randomness.choice(conditions)}"
    if kind == 1:
        field = randomness.choice(["creation_time", "last_update_time"])
        return f"{field} {randomness.choice(_NUMERIC_COMPARATORS)} {randomness.choice([0, 5, 9_999_999_999_999])}"
    if kind == 2:
        return f"name {_text_condition(randomness)}"
    field = f"{_entity(randomness, 'tags', 'tag')}.{_quoted_key(TAGS, randomness)}"
    return f"{field} {_text_condition(randomness, with_null=True)}"


def _text_condition(randomness: random.Random, values: list[str] = WORDS, with_null: bool = False) -> str:
    if with_null and randomness.random() < 0.25:
        return randomness.choice(_NULL_COMPARATORS)
    value = randomness.choice(LONG_WORDS if values is WORDS and randomness.random() < 0.05 else values)
    comparator = randomness.choice(_TEXT_COMPARATORS)
    if comparator.upper().endswith("LIKE"):
        value = randomness.choice(_patterns(value, randomness))
    quote = '"' if "'" in value or randomness.random() < 0.2 else "'"
    return f"{comparator} {quote}{value}{quote}"


def _patterns(value: str, randomness: random.Random) -> list[str]:
    """Returns patterns, most of which match the value: as a whole, by its beginning, its end, or a
    part.
    """
    begin = randomness.randint(0, max(0, len(value) - 1))
    part = value[begin:begin + randomness.randint(1, 5)]
    last = value.rpartition(" ")[2]
    patterns = [value, f"%{value}", f"{value}%", f"%{value[1:]}%", f"_{value[1:]}", value.upper(), f"%{value.upper()}%"]
    return patterns + [f"%{part}%", f"%{part}%", f"{value[:begin]}%", f"%{part}", f"% {last}%", f"%{last}", "%%", "_%"]


def _entity(randomness: random.Random, *names: str) -> str:
    # Occasionally an unknown entity.
    return "colour" if randomness.random() < 0.02 else randomness.choice(names)


def _quoted_key(keys: list[str], randomness: random.Random) -> str:
    key = randomness.choice([*keys, "missing"])
    plain = key.isidentifier() and key.isascii()
    quote = randomness.choice(["", "", "`", '"'] if plain else ["`", '"', ""])
    return f"{quote}{key}{quote}"


def _order(randomness: random.Random, fields: list[str]) -> str:
    return f"{randomness.choice(fields)}{randomness.choice(['', ' ASC', ' DESC', ' desc', ' asc', ' DESC', ' UP'])}"


def _run_orders() -> list[str]:
    keyed = [("metrics", METRICS), ("params", PARAMS), ("tags", TAGS)]
    fields = [f"{entity}.`{key}`" for entity, keys in keyed for key in [*keys, "missing"]]
    return [*fields, "start_time", "end_time", "status", "attributes.run_name", "user_id", "created", "nothing"]


_EXPERIMENT_ORDERS = ["name", "experiment_id", "creation_time", "last_update_time", "attribute.name", "tags.word", "x"]
