"""Traces, and queries for figures about them, for `record_trace_metrics.py`. `${…}` refers to a
value in an earlier response.
"""

import itertools
import json
import random
from typing import Any

DAY = 86_400_000
#: 2024-03-01.
BEGIN = 1_709_251_200_000

_METRICS = {
    "TRACES": {
        "trace_count": (["COUNT"], ["trace_name", "trace_status"]),
        "session_count": (["COUNT"], []),
        "latency": (["AVG", "MIN", "MAX", "P50", "P99.9"], ["trace_name"]),
        "input_tokens": (["SUM", "AVG", "MIN", "MAX", "P50"], ["trace_name"]),
        "output_tokens": (["SUM", "P0", "P100"], ["trace_name"]),
        "total_tokens": (["SUM", "AVG"], ["trace_name"]),
        "cache_read_input_tokens": (["SUM"], ["trace_name"]),
        "cache_creation_input_tokens": (["MAX", "SUM"], ["trace_name"]),
    },
    "SPANS": {
        "span_count": (["COUNT"], ["span_model_name", "span_model_provider", "span_name", "span_status", "span_type"]),
        "latency": (["AVG", "MIN", "MAX", "P90"], ["span_name", "span_status"]),
        "input_cost": (["SUM", "AVG", "P25"], ["span_model_name", "span_model_provider"]),
        "output_cost": (["SUM", "MIN", "MAX"], ["span_model_name", "span_model_provider"]),
        "total_cost": (["SUM", "AVG", "MIN", "MAX", "P50"], ["span_model_name", "span_model_provider"]),
    },
    "ASSESSMENTS": {
        "assessment_count": (["COUNT"], ["assessment_name", "assessment_value"]),
        "assessment_value": (["AVG", "MIN", "MAX", "P75"], ["assessment_name"]),
    },
}
_FILTERS = {
    "TRACES": [
        "trace.status = 'OK'",
        "trace.status = 'ok'",
        "trace.tag.mlflow.traceName = 'ask'",
        "trace.tag.team = 'red'",
        "trace.tag.`a b` = 'x'",
        "trace.tag.nobody = 'x'",
        "trace.metadata.mlflow.trace.session = 's1'",
        "trace.metadata.mlflow.sourceRun = '${run}'",
        'trace.metadata.mlflow.trace.tokenUsage = \'{"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}\'',
        'trace.metadata.mlflow.trace.tokenUsage = \'{"output_tokens": 7, "input_tokens": 5, "total_tokens": 12}\'',
        "trace.metadata.place = 'here'",
        '`trace`.metadata."place" = "here"',
    ],
    "SPANS": [
        "span.name = 'root'",
        "span.status = 'ERROR'",
        "span.type = 'LLM'",
        "trace.status = 'ERROR'",
        "trace.tag.mlflow.traceName = 'ask'",
        "trace.metadata.mlflow.trace.session = 's1'",
    ],
    "ASSESSMENTS": [
        "assessment.name = 'right'",
        "assessment.type = 'feedback'",
        "assessment.type = 'expectation'",
        "trace.status = 'OK'",
        "trace.tag.team = 'red'",
        "trace.metadata.mlflow.trace.session = 's1'",
    ],
}
_WRONG_FILTERS = [
    "",
    "x",
    "trace = 'x'",
    "trace.status",
    "trace.status = OK",
    'trace.status = "OK"',
    "trace.status = `OK`",
    "trace.status = 5",
    "trace.status != 'OK'",
    "trace.status LIKE 'OK'",
    "trace.status = 'OK' AND trace.status = 'OK'",
    "trace.status.x = 'OK'",
    "trace.tag = 'x'",
    "trace.nothing = 'x'",
    "nothing.x = 'x'",
    "span.name = 'x'",
    "assessment.name = 'x'",
    "'trace'.status = 'x'",
    "trace.status = 'OK';",
    "trace.status IN ('OK')",
    "trace.status = ''",
]
_USAGES: list[dict[str, Any]] = [
    {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
    {"input_tokens": 1000, "output_tokens": 2, "total_tokens": 1002, "cache_read_input_tokens": 900},
    {"input_tokens": "8", "output_tokens": 3.0, "total_tokens": True},
    {"input_tokens": 2.5, "output_tokens": None, "total_tokens": "many", "cache_creation_input_tokens": "1e3"},
    {"input_tokens": -3, "output_tokens": 0, "total_tokens": 2**60},
    {"input_tokens": [], "output_tokens": " 4 ", "total_tokens": 2**70, "cache_creation_input_tokens": 11},
]
_COSTS = [
    {"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3},
    {"input_cost": 0.0123, "output_cost": 1e-9, "total_cost": 0.0123},
    {"input_cost": 1, "output_cost": 1, "total_cost": 2},
    {"input_cost": -1.5, "output_cost": 0.0, "total_cost": -1.5},
]
_MODELS = ["gpt-4o-mini", "claude-sonnet-4-5", "m" * 510, "é"]
_JUDGEMENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("right", "feedback", {"value": True}),
    ("right", "feedback", {"value": False}),
    ("right", "feedback", {"value": "yes"}),
    ("right", "feedback", {"value": " NO "}),
    ("right", "feedback", {"value": "maybe"}),
    ("score", "feedback", {"value": 3}),
    ("score", "feedback", {"value": 0.25}),
    ("score", "feedback", {"value": "5"}),
    ("list", "feedback", {"value": [1, 2]}),
    # With only one key, because MLflow returns several keys in the order of a hash table.
    ("object", "feedback", {"value": {"a": "é"}}),
    ("failed", "feedback", {"error": {"error_code": "E", "error_message": "failed"}}),
    ("expected", "expectation", {"value": "é"}),
    ("expected", "expectation", {"value": 42}),
    ("expected", "expectation", {"serialized_value": {"serialization_format": "JSON_FORMAT", "value": '{"a": 1}'}}),
]
Call = dict[str, Any]


def _call(method: str, path: str, body: Any, experiment: str | None = None, capture: list[str] | None = None) -> Call:
    call = {"method": method, "path": path, "body": body}
    return call | ({"experiment": experiment} if experiment else {}) | ({"capture": capture} if capture else {})


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": json.dumps(value)}}


def _span(randomness: random.Random, trace: int, number: int, time: int) -> dict[str, Any]:
    # Includes the last nanoseconds before an hour, which SQLite rounds up.
    start = (time + number * 10) * 1_000_000 + randomness.choice([0, 1, 999_999])
    if randomness.random() < 0.1:
        start = (time - time % 3_600_000 + 3_600_000) * 1_000_000 - randomness.choice([1, 60, 200])
    span = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number + 1:016x}",
        "name": "root" if number == 0 else randomness.choice(["think", "call", "Call"]),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + randomness.choice([0, 999_999, 1_500_000, 2_000_000_000])),
        "status": {"code": randomness.choice([0, 1, 1, 2])},
        "attributes": [],
    }
    if number:
        span["parentSpanId"] = f"{1:016x}"
    attributes = span["attributes"]
    if randomness.random() < 0.7:
        # A plain string, as MLflow's client sends it. The other branches use the attributes of
        # other SDKs.
        kind = randomness.choice(["LLM", "CHAIN", "TOOL", "UNKNOWN", "my type"])
        attributes.append({"key": "mlflow.spanType", "value": {"stringValue": kind}})
    elif randomness.random() < 0.7:
        attributes.append({"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}})
        attributes.append({"key": "gen_ai.request.model", "value": {"stringValue": "gpt-4o"}})
        attributes.append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": "1000"}})
        attributes.append({"key": "gen_ai.usage.output_tokens", "value": {"intValue": "10"}})
    if randomness.random() < 0.6:
        attributes.append(_attribute("mlflow.llm.model", randomness.choice(_MODELS)))
        if randomness.random() < 0.7:
            attributes.append(_attribute("mlflow.llm.provider", randomness.choice(["openai", "anthropic"])))
        if randomness.random() < 0.5:
            attributes.append(_attribute("mlflow.llm.cost", randomness.choice(_COSTS)))
        if randomness.random() < 0.5:
            attributes.append(_attribute("mlflow.chat.tokenUsage", _USAGES[randomness.randrange(2)]))
    return span


def _traces(randomness: random.Random) -> list[Call]:
    calls = []
    for number in range(1, 41):
        experiment = randomness.choice(["${a}", "${a}", "${b}", "${deleted}"])
        time = BEGIN + randomness.choice([0, 1, 59_999, 3_600_000, DAY - 1, DAY, 2 * DAY + 5_000])
        if number % 4:
            spans = [_span(randomness, number, place, time) for place in range(randomness.randrange(1, 5))]
            body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
            calls.append(_call("POST", "/v1/traces", body, experiment))
        info = {
            "trace_id": f"tr-{number:032x}",
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
            "request_time": f"2024-03-0{1 + (time - BEGIN) // DAY}T{_clock((time - BEGIN) % DAY)}Z",
            "state": randomness.choice(["OK", "OK", "ERROR", "IN_PROGRESS"]),
            "tags": {},
            "trace_metadata": {},
        }
        if randomness.random() < 0.8:
            info["execution_duration"] = randomness.choice(["0s", "0.001s", "1.500s", "3.333s", "10s"])
        if randomness.random() < 0.8:
            info["tags"]["mlflow.traceName"] = randomness.choice(["ask", "Ask", "answer", "é", ""])
        if randomness.random() < 0.5:
            info["tags"] |= {"team": randomness.choice(["red", "blue"]), "a b": "x"}
        if randomness.random() < 0.5:
            info["trace_metadata"]["mlflow.trace.session"] = randomness.choice(["s1", "s2", "s3"])
        if randomness.random() < 0.6:
            info["trace_metadata"]["mlflow.trace.tokenUsage"] = json.dumps(randomness.choice(_USAGES))
        if randomness.random() < 0.3:
            info["trace_metadata"] |= {"place": "here", "mlflow.sourceRun": "${run}"}
        calls.append(_call("POST", "/api/3.0/mlflow/traces", {"trace": {"trace_info": info}}))
        calls += [_assess(number, judgement) for judgement in randomness.sample(_JUDGEMENTS, randomness.randrange(3))]
    return calls


def _clock(ms: int) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def _assess(trace: int, judgement: tuple[str, str, Any], overrides: str | None = None, capture: list[str] | None = None) -> Call:
    name, kind, said = judgement
    assessment = {"assessment_name": name, kind: said, "source": {"source_type": "HUMAN", "source_id": "x"}}
    if overrides:
        assessment["overrides"] = overrides
    return _call("POST", f"/api/3.0/mlflow/traces/tr-{trace:032x}/assessments", {"assessment": assessment}, capture=capture)


def made(seed: int) -> list[Call]:
    """Returns the requests that create the traces."""
    randomness = random.Random(seed)
    calls = [
        _call("POST", "/api/2.0/mlflow/experiments/create", {"name": name}, capture=["experiment_id", name])
        for name in ("a", "b", "deleted")
    ]
    run = {"experiment_id": "${a}", "start_time": 0}
    calls.append(_call("POST", "/api/2.0/mlflow/runs/create", run, capture=["run.info.run_id", "run"]))
    calls += _traces(randomness)
    calls.append(_assess(1, _JUDGEMENTS[0], capture=["assessment.assessment_id", "overridden"]))
    calls.append(_assess(1, _JUDGEMENTS[1], overrides="${overridden}"))
    linked = {"trace_ids": [f"tr-{2:032x}", f"tr-{4:032x}"], "run_id": "${run}"}
    calls.append(_call("POST", "/api/2.0/mlflow/traces/link-to-run", linked))
    tag = {"key": "team", "value": "green"}
    calls.append(_call("PATCH", f"/api/3.0/mlflow/traces/tr-{3:032x}/tags", tag))
    gone = {"experiment_id": "${a}", "request_ids": [f"tr-{5:032x}"]}
    calls.append(_call("POST", "/api/2.0/mlflow/traces/delete-traces", gone))
    calls.append(_call("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": "${deleted}"}))
    return calls


def _aggregation(name: str) -> dict[str, Any]:
    if name.startswith("P"):
        return {"aggregation_type": "PERCENTILE", "percentile_value": float(name[1:])}
    return {"aggregation_type": name}


def asked() -> list[dict[str, Any]]:
    """Returns the queries for figures."""
    times = {"start_time_ms": BEGIN, "end_time_ms": BEGIN + 2 * DAY}
    found = []
    for view, metrics in _METRICS.items():
        for metric, (aggregations, dimensions) in metrics.items():
            base = {
                "experiment_ids": ["${a}", "${b}"],
                "view_type": view,
                "metric_name": metric,
                "aggregations": [_aggregation(name) for name in aggregations],
            }
            found += [base, base | times, base | times | {"time_interval_seconds": 3600}]
            found += [base | {"dimensions": [dimension]} for dimension in dimensions]
            found += [base | {"dimensions": list(pair)} for pair in itertools.combinations(dimensions, 2)]
            found.append(base | times | {"time_interval_seconds": 86_400, "dimensions": dimensions[:2]})
        first, (aggregations, dimensions) = next(iter(metrics.items()))
        base = {"experiment_ids": ["${a}", "${b}"], "view_type": view, "metric_name": first}
        base["aggregations"] = [_aggregation(name) for name in aggregations]
        found += [base | {"filters": [filter_string]} for filter_string in _FILTERS[view]]
        found.append(base | {"filters": _FILTERS[view][:2]})
        found += [base | {"dimensions": dimensions[:1], "max_results": most} for most in (0, 1, 2, -1, 100_000)]
    count = {
        "experiment_ids": ["${a}"],
        "view_type": "TRACES",
        "metric_name": "trace_count",
        "aggregations": [{"aggregation_type": "COUNT"}],
    }
    latency = count | {"metric_name": "latency"}
    found += [count | {"filters": [filter_string]} for filter_string in _WRONG_FILTERS]
    found += [count | {"filters": ["trace.status = 'OK'", filter_string]} for filter_string in ("x", "span.name = 'x'")]
    found += [count | {"experiment_ids": ids} for ids in ([], ["${deleted}"], ["987654321"], ["x"], ["${a}", "${a}"])]
    found += [count | times | {"time_interval_seconds": seconds} for seconds in (0, 1, 7, 60, 5_000_000)]
    found += [count | {name: value} for name, value in times.items()]
    found += [count | {name: value, "time_interval_seconds": 60} for name, value in times.items()]
    found.append(count | {"start_time_ms": BEGIN + 5, "end_time_ms": BEGIN})
    found.append(count | {"start_time_ms": -(2**63), "end_time_ms": 2**63 - 1})
    found += [count | {"dimensions": names} for names in (["trace_name"] * 2, ["x", "span_name"], [""])]
    found += [count | {"metric_name": name} for name in ("", "x", "span_count", "TRACE_COUNT")]
    found += [count | {"view_type": view} for view in ("SPANS", "ASSESSMENTS", 1, "x", None)]
    found += [latency | {"aggregations": [{"aggregation_type": kind}]} for kind in ("COUNT", "SUM", "PERCENTILE", "x")]
    found += [
        latency | {"aggregations": [{"aggregation_type": "PERCENTILE", "percentile_value": value}]}
        for value in (0, 100, 33.3333, 1e-7, -1, 100.5, "50")
    ]
    found.append(latency | {"aggregations": [{"aggregation_type": "AVG", "percentile_value": 5}]})
    found.append(latency | {"aggregations": [{"aggregation_type": "AVG"}] * 2})
    found.append(latency | {"aggregations": [{"aggregation_type": kind} for kind in ("SUM", "COUNT", "AVG")]})
    found.append(latency | {"aggregations": [{"aggregation_type": "PERCENTILE", "percentile_value": p} for p in (50, 50.0, 90)]})
    found.append(count | {"page_token": "x"})
    found.append(count | {"aggregations": [], "dimensions": ["trace_name"]})
    found += [{key: value for key, value in count.items() if key != missing} for missing in count]
    return found


def correlations() -> list[dict[str, Any]]:
    """Returns the queries for correlations between filters."""
    pairs = [
        ("status = 'OK'", "tag.team = 'red'"),
        ("status = 'OK'", "status = 'ERROR'"),
        ("status = 'OK'", "status = 'OK'"),
        ("timestamp > 0", "timestamp > 0"),
        ("timestamp > 0", "status = 'OK'"),
        ("status = 'OK'", "name = 'nobody'"),
        ("execution_time > 1000", "span.name = 'think'"),
        ("span.type = 'LLM'", "span.status = 'ERROR'"),
        ("feedback.right = 'true'", "status = 'OK'"),
        ("metadata.mlflow.trace.session = 's1'", "tag.team IS NOT NULL"),
        ("", "status = 'OK'"),
        ("status = 'OK'", ""),
        ("nothing = 'x'", "status = 'OK'"),
        ("status = 'OK'", "("),
    ]
    found = []
    for first, second in pairs:
        body = {"experiment_ids": ["${a}", "${b}"], "filter_string1": first, "filter_string2": second}
        found += [body, body | {"base_filter": "status != 'IN_PROGRESS'"}]
    ok = {"filter_string1": "status = 'OK'", "filter_string2": "tag.team = 'red'"}
    found += [ok | {"experiment_ids": ids} for ids in ([], ["${deleted}"], ["987654321"], ["x"])]
    found += [ok | {"experiment_ids": ["${a}"], "base_filter": base} for base in ("", "name = 'nobody'", "x", "status = 'OK' AND ")]
    found.append({"experiment_ids": ["${a}"], "filter_string1": "status = 'OK'"})
    return found
