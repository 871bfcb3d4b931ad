"""Random searches of the traces of `random_traces`, with valid and invalid filters and orders."""

import random

from tests.compare.random_traces import (
    DAY,
    EXPECTATIONS,
    FEEDBACK,
    ISSUES,
    METADATA,
    NAMES,
    PROMPTS,
    RUNS,
    SPAN_ATTRIBUTES,
    SPAN_TYPES,
    SPANS,
    START,
    STATES,
    TAGS,
)

_NUMERIC = ["=", "!=", "<", "<=", ">", ">="]
_TEXT = ["=", "!=", "LIKE", "ILIKE", "RLIKE", "like", "rlike", "iLike"]
_NULL = ["IS NULL", "IS NOT NULL", "is null"]
_NOISE = ["(", ")", "OR", "AND", "NOT", ";", ",", "'", '"', "`", "=", "==", "IN", "5", "NULL", "--", "x", ".", "é", "timestamp"]
_ORDERS = [
    *["timestamp", "timestamp_ms", "execution_time", "execution_time_ms", "status", "request_id", "experiment_id", "name", "run_id"],
    *["end_time", "tag.env", "tags.`a key`", "metadata.note", "metadata.mlflow.trace.session", "request_metadata.missing"],
    *["tag.mlflow.traceName", "trace.status", "attributes.timestamp_ms", "metadata.mlflow.trace.cost", "span.name", "feedback.quality"],
    *["text", "tag.text", "tag.prompt", "nonsense", "issue.id", "trace.client_request_id"],
]
_SOUND_ORDERS = _ORDERS[:9] + _ORDERS[10:17]
_DIRECTIONS = ["", "", " ASC", " DESC", " DESC", " desc"]


def search(randomness: random.Random) -> list:
    """Returns the experiments, the filter and the order of a random search."""
    experiments = randomness.choice([[0, 1, 2], [0, 1, 2], [0], [1, 2]])
    orders = [
        randomness.choice(_SOUND_ORDERS if randomness.random() < 0.95 else _ORDERS) + randomness.choice(_DIRECTIONS)
        for _ in range(randomness.choice([0, 0, 1, 1, 2]))
    ]
    clauses = [_clause(randomness) for _ in range(randomness.choice([0, 1, 1, 1, 2, 2, 3]))]
    text = randomness.choice([" AND ", " AND ", " and ", "  AND\n"]).join(clauses)
    return [experiments, _spoiled(text, randomness) if randomness.random() < 0.1 else text, orders]


def _spoiled(text: str, randomness: random.Random) -> str:
    words = text.split(" ")
    position = randomness.randrange(len(words))
    change = randomness.randrange(3)
    if change == 0:
        del words[position]
    else:
        words.insert(position, words[position] if change == 1 else randomness.choice(_NOISE))
    return " ".join(words)


def _clause(randomness: random.Random) -> str:
    kinds = [_time, _attribute, _keyed, _keyed, _span, _span, _span_attribute, _content, _assessment, _assessment, _link]
    return randomness.choice(kinds)(randomness)


def _quoted(value, randomness: random.Random) -> str:
    quote = "'" if "'" not in str(value) and randomness.random() < 0.8 else '"'
    return f"{quote}{value}{quote}"


def _condition(values: list, randomness: random.Random, nulls: float = 0.1, lists: float = 0.1) -> str:
    if randomness.random() < nulls:
        return randomness.choice(_NULL)
    value = str(randomness.choice([value for value in values if value is not None]))
    if randomness.random() < lists:
        other = str(randomness.choice(values))
        return f"{randomness.choice(['IN', 'NOT IN', 'in'])} ({_quoted(value, randomness)}, {_quoted(other, randomness)})"
    comparator = randomness.choice(_TEXT)
    if "IKE" in comparator.upper() and comparator.upper() != "RLIKE":
        value = _pattern(value, randomness)
    elif comparator.upper() == "RLIKE":
        value = _expression(value, randomness)
    return f"{comparator} {_quoted(value, randomness)}"


def _pattern(value: str, randomness: random.Random) -> str:
    start = randomness.randrange(len(value) + 1)
    piece = value[start : start + randomness.randint(0, 5)].replace("'", "_")
    return randomness.choice([f"%{piece}%", f"{value[:start]}%", f"%{value[start:]}", value, value.upper(), value.replace("a", "_"), "%"])


def _expression(value: str, randomness: random.Random) -> str:
    start = randomness.randrange(len(value) + 1)
    expressions = [value[:3], f"^{value[:start]}", f"{value[start:]}$", f"^{value}$", ".", "^.{3,5}$", "[a-c]r?", r"\d+", "(?i)PRO", "x|y", "(", "a{", "^$", "[[]", r"\w-\d"]
    return randomness.choice(expressions)


def _time(randomness: random.Random) -> str:
    field = randomness.choice(
        ["timestamp", "timestamp_ms", "trace.timestamp", "attributes.timestamp_ms", "execution_time", "trace.execution_time_ms", "end_time", "attribute.end_time_ms"]
    )
    if "execution" in field:
        value = randomness.choice([0, 7, 10, 1500, 1500.5, "'7'", "'x'"])
    else:
        value = START + randomness.randrange(4) * DAY + randomness.choice([0, 1, 500, 1500, 60_000])
        value = randomness.choice([value, value, value, value, f"{value}.5", f"'{value}'", "'abc'"])
    return f"{field} {randomness.choice(_NUMERIC * 3 + ['LIKE', 'IS NULL', '=='])} {value}"


def _attribute(randomness: random.Random) -> str:
    field, values = randomness.choice([
        *[("status", STATES), ("name", NAMES), ("client_request_id", ["client-1", "client-2"]), ("request_id", ["tr-001", "tr-02"])],
        *[("run_id", RUNS), ("text", ["city", "Zürich"])],
    ])  # fmt: skip
    prefix = randomness.choice(["", "", "trace.", "attributes.", "attribute."])
    return f"{prefix}{field} {_condition(values, randomness, lists=0.25)}"


def _keyed(randomness: random.Random) -> str:
    prefixes, values = randomness.choice([
        (["tag.", "tags."], {**TAGS, "mlflow.traceName": NAMES, "name": NAMES, "run_id": RUNS, "missing": ["x"]}),
        (["metadata.", "request_metadata."], {**METADATA, "run_id": RUNS, "missing": ["x"]}),
    ])  # fmt: skip
    key = randomness.choice(list(values))
    return f"{randomness.choice(prefixes)}{_key(key, randomness)} {_condition(values[key], randomness, nulls=0.25, lists=0.03)}"


def _key(key: str, randomness: random.Random) -> str:
    return f"`{key}`" if " " in key or randomness.random() < 0.3 else key


def _span(randomness: random.Random) -> str:
    field, values = randomness.choice(
        [("name", SPANS), ("name", SPANS), ("type", SPAN_TYPES), ("status", ["OK", "ERROR", "UNSET"]), ("span_id", ["1"]), ("start", ["1"])]
    )
    return f"span.{field} {_condition(values, randomness, nulls=0.03, lists=0.2)}"


def _span_attribute(randomness: random.Random) -> str:
    key = randomness.choice(list(SPAN_ATTRIBUTES))
    values = [f"%{value}%" if randomness.random() < 0.4 else value for value in SPAN_ATTRIBUTES[key]]
    return f"span.attributes.{_key(key, randomness)} {_condition(values, randomness, nulls=0.03, lists=0.03)}"


def _content(randomness: random.Random) -> str:
    field = randomness.choice(["trace.text", "attributes.text", "span.content"])
    value = randomness.choice(["gpt", "Zürich", "zürich", "New_York", '"model"', "nothing", "llm.temp"])
    return f"{field} {randomness.choice(['LIKE', 'LIKE', 'ILIKE', 'like', 'RLIKE', '='])} '%{value}%'"


def _assessment(randomness: random.Random) -> str:
    family, values = randomness.choice([("feedback", FEEDBACK), ("feedback", FEEDBACK), ("expectation", EXPECTATIONS)])
    key = randomness.choice([*values, *values, "missing", "name"])
    if randomness.random() < 0.35:
        return f"{family}.{_key(key, randomness)} {randomness.choice(_NUMERIC)} {randomness.choice([0, 0.5, 1, 3, 4.5, 1e3, -1])}"
    texts = [{True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else value for value in values.get(key, ["x"])]
    return f"{family}.{_key(key, randomness)} {_condition(texts, randomness, nulls=0.3, lists=0.03)}"


def _link(randomness: random.Random) -> str:
    kind = randomness.randrange(4)
    if kind == 0:
        return f"prompt {randomness.choice(['=', '=', '=', '!=', 'LIKE'])} '{randomness.choice([*PROMPTS, 'greet', 'a/b/c'])}'"
    if kind == 1:
        return f"issue.{randomness.choice(['id', 'id', 'id', 'status'])} {randomness.choice(['=', '=', '!='])} '{randomness.choice(ISSUES)}'"
    field = randomness.choice(["run_id", "attributes.run_id", "trace.run_id", "metadata.mlflow.sourceRun", "metadata.run_id"])
    return f"{field} {randomness.choice(['=', '=', '=', '!=', 'LIKE', 'IN'])} '{randomness.choice(RUNS)}'"


def written_out() -> list:
    """Returns searches for cases that random searches rarely cover."""
    filters = [
        *["", " ", "name", "timestamp", "timestamp >", "timestamp > 5 timestamp", "timestamp > '5'", "timestamp >= 1.5", "timestamp IN (1)"],
        *["timestamp LIKE 5", "Timestamp > 5", "TIMESTAMP > 5", "timestamp > 5 AND timestamp < 1900000000000", "text LIKE '%a%'"],
        *["status = OK", "status = 'OK' OR name = 'x'", "(status = 'OK')", "status = 'OK'; name = 'x'", "status = 5", "status > 'A'"],
        *["status IN ()", "status IN (1)", "status IN ('OK', 1)", "status IN (OK)", "status IN 'OK'", "status = ('OK')", "status LIKE ('OK')"],
        *["timestamp_ms = ('1')", "trace.timestamp IN ('1')", "trace.end_time IN (1)", "timestamp_ms = abc", "timestamp_ms = `1`"],
        *["name IN ('predict')", "run_id IN ('run1')", "trace.text IN ('x')", "prompt IN ('a/1')", "prompt IS NULL", "tag.prompt = ('a/1', 'b')"],
        *["tag.x = 5", "tag.x = ('a', 'b')", "tag.x IN ('a', 'b')", "metadata.x = 5", "metadata.x IN ('a')", "tags.x > 'a'", "tag.a.b.c = 'x'"],
        *["metadata.x <> 'a'", "metrics.x > 1", "params.x = 'a'", "attr.status = 'OK'", "run.status = 'OK'", "dataset.name = 'x'", "a.b = 'c'"],
        *["`trace`.status = 'OK'", "trace.`status` = 'OK'", "trace.'status' = 'OK'", 'trace."status" = "OK"', "Trace.status = 'OK'"],
        *["nothing = 'x'", "trace.nothing = 'x'", "trace.Name = 'predict'", "tag.Name = 'predict'", "tag.TEXT LIKE '%gpt%'", "feedback.text LIKE '%gpt%'"],
        *["feedback.name = 'predict'", "feedback.timestamp > 3", "feedback.run_id > 3", "expectation.prompt = 'greet/1'", "issue.name = 'predict'"],
        *["span.name IS NULL", "span.status IS NOT NULL", "span.nothing = 'x'", "span.attributes. = 'x'", "span.attributes.x > 'a'"],
        *["span.attributes.x IS NULL", "span.content = 'x'", "span.content IS NULL", "span.name = 5", "span.name IN (5)", "span.name = ('llm_call')"],
        *["span.attributes.model IN ('gpt-4')", "span.attributes.model = 'gpt-4'", "span.attributes.model != 'gpt-4'"],
        *["span.attributes.model RLIKE '^gpt'", "span.attributes.model RLIKE '4$'", "span.attributes.model RLIKE 'pt.4$'"],
        *["span.attributes.model RLIKE '^gpt-4$'", "span.attributes.city ILIKE '%new york%'", "span.attributes.`model` LIKE '%gpt-4o%'"],
        *["span.name = 'llm_call' AND span.status = 'ERROR'", "span.name = 'llm_call' AND span.name = 'retrieve'", "span.attributes.Model = 'x'"],
        *["span.name != 'llm_call'", f"span.name LIKE '%' AND timestamp > {START}", f"timestamp >= {START + DAY} AND span.name LIKE '%'"],
        *[f"timestamp_ms > {START}.5 AND span.type != 'X'", "timestamp_ms > '1' AND span.name LIKE '%'", "span.type NOT IN ('LLM', 'TOOL')"],
        *["feedback.quality = 5", "feedback.quality = '5'", "feedback.quality = '4'", "feedback.quality = '4.0'", "feedback.quality > '1'"],
        *["feedback.quality >= 1", "feedback.quality > 0.5 AND feedback.correct = 'yes'", "feedback.correct = 'true'", "feedback.correct >= 0"],
        *["feedback.größe = 'süß'", "feedback.`größe` = 'süß'", "feedback.größe IS NULL", "feedback.größe = 'null'", "feedback.größe LIKE '%\\u00fc%'"],
        *["feedback.quality IS NULL", "feedback.quality IS NOT NULL", "feedback.quality LIKE '%oo%'", "feedback.quality RLIKE '^.good'"],
        *["feedback. = 'x'", "feedback.'' = 'x'", "feedback.quality IN ('5')", "feedback.quality = good", "feedback.quality = ('x')"],
        *["expectation.answer = 'Paris'", 'expectation.answer = "it\'s"', "expectation.answer = '42'", "expectation.answer > 41", "expectation.answer LIKE '{%'"],
        *["expectation.missing != 'x'", "expectation.missing IS NULL", "feedback.quality != 'good'", "feedback.quality < 99999999999999999999"],
        *["issue.id = 'iss-1'", "issue.id != 'iss-1'", "issue.id IS NULL", "issue.id = 5", "issue.id IN ('x')", "issue.nothing = 'x'"],
        *["prompt = 'greet/1'", "prompt = 'greet'", "prompt = 'greet/1/2'", "prompt LIKE 'greet/%'", "prompt = 5", "trace.prompt = 'greet/2'"],
        *["run_id = 'run1'", "run_id = 'run1' AND run_id = 'run2'", "run_id != 'run1'", "run_id IS NULL", "run_id IS NOT NULL", "run_id LIKE 'run%'"],
        *["metadata.mlflow.sourceRun = 'run3'", "metadata.run_id = 'run3'", "tag.run_id = 'run3'", "name IS NULL", "tag.name IS NOT NULL"],
        *["metadata.mlflow.trace.tokenUsage LIKE '%15%'", 'metadata.mlflow.trace.tokenUsage = \'{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}\''],
        *['metadata.mlflow.trace.tokenUsage != \'{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}\'', "metadata.mlflow.trace.cost IS NULL"],
        *["metadata.`mlflow.trace.cost` = 'x'", "metadata.mlflow.trace.cost != 'x'", "metadata.mlflow.trace.cost > 'x'", "metadata.mlflow.trace.session ILIKE 's2'"],
        *["client_request_id = 'client-1'", "client_request_id != 'client-1'", "client_request_id NOT IN ('client-1')", "request_id LIKE 'tr-00_'"],
        *["execution_time > 7", "execution_time != 7", "execution_time_ms = '7'", "execution_time_ms > 'x'", "execution_time_ms != 'x'", "end_time = '1'"],
        *[f"end_time > {START + DAY}", f"end_time <= {START + 60_000}", f"end_time != '{START}'", "execution_time = 7.0", "execution_time = 0x7"],
        *["experiment_id = '0'", "trace.experiment_id = '1'", "tag.env RLIKE 'a++'", "tag.env RLIKE '(?=p)prod'", "tag.env RLIKE '['", "tag.`team.name` RLIKE 'l$'"],
        *["tag.env = ''", "tag.env LIKE ''", "tag.env LIKE '%\\%%'", "tag.env LIKE 'pro_d'", "tag.env NOT LIKE 'p%'", "tag.`a key` = \"'y'\"", "tag.env = 'prod' -- x"],
        *["tag.env = 'prod' AND tag.`team.name` = 'ml' AND metadata.note = 'a_b'", "tag.env = 'prod' AND tag.env = 'dev'", "tag.env == 'x'", "tag.env ~ 'x'"],
        *["1 = 1", "'a' = 'a'", "tag.env", "tag.env =", "= 'x'", "tag.env = 'a' 'b'", "tag.env = tag.x", "tag.env IS", "tag.env IS NOT", "NOT tag.env = 'x'"],
        *["execution_time > 99999999999999999999", "execution_time > -1", "timestamp > -1", "execution_time > 1e3", "execution_time > +1", "tag.env = NULL"],
    ]  # fmt: skip
    orders = [*[[order] for order in _ORDERS], *[[f"{order} DESC"] for order in _ORDERS]]
    orders += [
        ["tag.env", "tag.env DESC"],
        ["timestamp", "timestamp_ms"],
        ["name", "tag.name"],
        ["tag.env DESC", "metadata.note", "timestamp ASC", "request_id DESC"],
        ["timestamp ASC"],
        ["timestamp  desc"],
        ["timestamp up"],
        ["timestamp asc desc"],
        [""],
        ["tag.env; x"],
        ["execution_time ASC", "request_id DESC"],
        ["status", "experiment_id desc"],
    ]
    mistakes = [[[0], "nothing = 'x'", ["nothing"]], [[0], "tag.x > 'x'", ["nothing"]], [[0, 1, 2], "status = 'OK'", ["tag.env", "metadata.note desc"]]]
    both = [[[0, 1, 2], "tag.env LIKE '%' AND prompt = 'greet/1'", ["tag.env"]], [[1], "feedback.quality IS NOT NULL", ["metadata.mlflow.trace.session"]]]
    return [[[0, 1, 2], text, []] for text in filters] + [[[0, 1, 2], "", order] for order in orders] + mistakes + both
