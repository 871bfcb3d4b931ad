"""Random requests about label schemas, review queues and issues."""

import random
from collections.abc import Iterator
from typing import Any

from tests.compare.random_domain import TEXTS, Requests, some
from tests.compare.scenario import Step

_V2 = "/api/2.0/mlflow"
_TRACES = 6
_STATUSES = ["PENDING", "COMPLETE", "DECLINED", "pending", 1, 2, 3, "2", "REVIEW_STATUS_UNSPECIFIED", "OTHER", 9]


class _InExperiments(Requests):
    """Requests about entities of experiments, of which one is deleted."""

    def __init__(self, randomness: random.Random):
        super().__init__(randomness)
        #: The numbers of deleted traces.
        self._deleted: set[int] = set()

    def begin(self) -> Iterator[Step]:
        for name in ("experiment", "another", "deleted"):
            yield _post(f"{_V2}/experiments/create", {"name": f"${{unique}} {name}"}, capture={name: "experiment_id"})
        yield _post(f"{_V2}/experiments/delete", {"experiment_id": "${deleted}"})

    def experiment(self) -> Any:
        """Returns the id of an experiment, which is usually the same."""
        if self.maybe(0.15):
            return self.random.choice(["${deleted}", "987654321", "no number", "", "0", " ${experiment}", "x1", "é"])
        return self.random.choice(["${experiment}"] * 4 + ["${another}"])

    def _trace(self, number: int) -> Step:
        place = "${experiment}" if number < _TRACES - 2 else "${another}"
        info = {
            "trace_id": f"tr-{number}${{unique}}",
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": place}},
            "request_time": "2025-01-01T00:00:00Z",
            "state": "OK",
        }
        return _post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})

    def _trace_id(self) -> str:
        if self.maybe(0.12):
            return self.random.choice(["missing", "", " ", " tr-1${unique} ", "a#b", "z" * 51, "tr-0"])
        return f"tr-{self.random.randrange(_TRACES)}${{unique}}"

    def _delete_trace(self) -> Step:
        number = self.random.randrange(_TRACES)
        self._deleted.add(number)
        place = "${experiment}" if number < _TRACES - 2 else "${another}"
        body = {"experiment_id": place, "request_ids": [f"tr-{number}${{unique}}"]}
        return _post("/api/3.0/mlflow/traces/delete-traces", body)

    def _create_trace(self) -> Step:
        """Creates a trace again, or deletes one if none is deleted."""
        return self._trace(self._deleted.pop()) if self._deleted else self._delete_trace()


class LabelSchemas(_InExperiments):
    domain = "label-schemas"
    slots = {"schema": "ls-" + "0" * 32}

    def begin(self) -> Iterator[Step]:
        yield from super().begin()
        for number, name in enumerate(("experiment", "another")):
            yield Step("the default schema", "GET", "/api/3.0/mlflow/label-schemas/list", query={"experiment_id": f"${{{name}}}"},
                       capture={f"default{number}": "label_schemas.0.schema_id"})

    def operations(self) -> dict[Any, int]:
        return {self._create: 9, self._get: 2, self._get_by_name: 3, self._list: 3, self._update: 6, self._delete: 2}

    def _name(self) -> str:
        return self.random.choice([*TEXTS, "Feedback", "feedback", " Feedback", "FEEDBACK", "Correct?"])

    def _id(self) -> str:
        if self.maybe(0.2):
            return self.random.choice(["${default0}", "${default1}", "ls-0", "", "a#b", "LS-" + "0" * 32, "é", " ${default0}", "z" * 40])
        return f"${{{self.slot('schema')}}}"

    def _input(self) -> Any:
        texts, numbers = [*TEXTS, "l" * 64, "l" * 65, ""], [0, 1, -1, 2.5, "3", "x", 1e20, "Infinity", "NaN", None, -0.0, 10**18, "1e2", True]
        options = [self.random.choice(texts) for _ in range(self.random.choice([0, 1, 2, 2, 3, 10, 11]))]
        return self.random.choice([
            {"pass_fail": {"positive_label": self.random.choice(texts), "negative_label": self.random.choice(texts)}},
            {"categorical": {"options": options} | some({"multi_select": self.random.choice([True, False, "true", 1])}, self.random)},
            {"numeric": some({"min_value": self.random.choice(numbers), "max_value": self.random.choice(numbers)}, self.random, 0.7)},
            {"text": some({"max_length": self.random.choice([1, 0, -1, "7", 2**31 - 1, 2**31, 10**6, 1.0, 1.5, "x"])}, self.random)},
            {"passFail": {"positiveLabel": "a", "negativeLabel": "b"}},
            {"text": {}, "numeric": {}},
        ])

    def _fields(self) -> dict[str, Any]:
        instruction = self.random.choice([*TEXTS, "", "i" * 1000, "i" * 1001, "é" * 1000])
        return {"instruction": instruction, "enable_comment": self.random.choice([True, False, True, "true", 1, "no"])}

    def _create(self) -> Step:
        kind = self.random.choice(["FEEDBACK", "EXPECTATION", "FEEDBACK", "EXPECTATION", 1, "2", "feedback", "LABEL_SCHEMA_TYPE_UNSPECIFIED", "", 7])
        body = {"experiment_id": self.experiment(), "name": self._name(), "type": kind, "input": self._input()}
        return self.send("POST", "/create", body | some(self._fields(), self.random, 0.3), 0.2, capture={self.slot("schema"): "label_schema.schema_id"})

    def _get(self) -> Step:
        return self.get("/get", {"schema_id": self._id()})

    def _get_by_name(self) -> Step:
        return self.get("/get-by-name", some({"experiment_id": self.experiment(), "name": self._name()}, self.random, 0.95))

    def _list(self) -> Step:
        return self.get("/list", {"experiment_id": self.experiment()} | self.pages(), follow_pages=True)

    def _update(self) -> Step:
        body = {"schema_id": self._id()} | some({"name": self._name(), "input": self._input(), "type": "EXPECTATION"} | self._fields(), self.random, 0.35)
        return self.send("PATCH", "/update", body, 0.15)

    def _delete(self) -> Step:
        return self.send("DELETE", "/delete", {"schema_id": self._id()}, 0.1)


class ReviewQueues(_InExperiments):
    domain = "review-queues"
    slots = {"queue": "rq-" + "0" * 32}

    def begin(self) -> Iterator[Step]:
        yield from super().begin()
        for number, place in enumerate(("experiment", "experiment", "another")):
            body = {"experiment_id": f"${{{place}}}", "name": f"q{number}", "type": "FEEDBACK", "input": {"text": {}}}
            yield _post("/api/3.0/mlflow/label-schemas/create", body, capture={f"schema{number}": "label_schema.schema_id"})
        for number in range(_TRACES):
            yield self._trace(number)

    def operations(self) -> dict[Any, int]:
        return {
            self._create: 8, self._queue_of: 3, self._get: 2, self._get_by_name: 3, self._list: 6, self._update: 6, self._delete: 2,
            self._add: 8, self._remove: 3, self._items: 5, self._set_status: 8, self._delete_trace: 1, self._create_trace: 1,
        }

    def _name(self) -> str:
        return self.random.choice([*TEXTS, "default", "Default", "ann", "bob", " Triage ", "triage"])

    def _user(self) -> str:
        return self.random.choice(["ann", "Ann", " ann ", "bob", "bob", "carol", *TEXTS])

    def _users(self) -> Any:
        return [self._user() for _ in range(self.random.choice([0, 1, 1, 2, 2, 10, 11]))]

    def _schemas(self) -> Any:
        usual = ["${schema0}", "${schema1}"] * 3 + ["${schema2}", "ls-0", "", " ${schema0} ", "é"]
        return [self.random.choice(usual) for _ in range(self.random.choice([0, 1, 1, 2, 3]))]

    def _id(self) -> str:
        if self.maybe(0.1):
            return self.random.choice(["rq-0", "", "a#b", "é", " rq-0 "])
        return f"${{{self.slot('queue')}}}"

    def _create(self) -> Step:
        kind = self.random.choice(["CUSTOM"] * 5 + ["USER", "USER", 1, 2, "2", "custom", "REVIEW_QUEUE_TYPE_UNSPECIFIED", "", 9])
        body = {"experiment_id": self.experiment(), "name": self._name(), "queue_type": kind}
        body |= some({"users": self._users(), "schema_ids": self._schemas(), "created_by": self._user()}, self.random, 0.4)
        return self.send("POST", "/create", body, 0.2, capture={self.slot("queue"): "review_queue.queue_id"})

    def _queue_of(self) -> Step:
        body = {"experiment_id": self.experiment(), "user": self._user()}
        return self.send("POST", "/get-or-create-user", body, 0.2, capture={self.slot("queue"): "review_queue.queue_id"})

    def _get(self) -> Step:
        return self.get("/get", {"queue_id": self._id()})

    def _get_by_name(self) -> Step:
        return self.get("/get-by-name", some({"experiment_id": self.experiment(), "name": self._name()}, self.random, 0.95))

    def _list(self) -> Step:
        query = {"experiment_id": self.experiment()} | some({"user": self._user(), "item_id": self._trace_id()}, self.random, 0.35)
        return self.get("/list", query | self.pages(), follow_pages=True)

    def _update(self) -> Step:
        fields = {
            "name": self._name(), "new_owner": self._user(), "users": self._users(), "schema_ids": self._schemas(),
            "update_users": self.random.choice([True, True, False, "true"]), "update_schema_ids": self.random.choice([True, True, False, 1]),
        }
        return self.send("POST", "/update", {"queue_id": self._id()} | some(fields, self.random, 0.4), 0.15)

    def _delete(self) -> Step:
        return self.send("POST", "/delete", {"queue_id": self._id()}, 0.1)

    def _item_ids(self) -> list[str]:
        return [self._trace_id() for _ in range(self.random.choice([0, 1, 1, 1, 2, 3, 6]))]

    def _add(self) -> Step:
        kind = some({"item_type": self.random.choice(["TRACE", "TRACE", 1, "OTHER", "REVIEW_ITEM_TYPE_UNSPECIFIED", "SESSION"])}, self.random, 0.25)
        return self.send("POST", "/items/add", {"queue_id": self._id(), "item_ids": self._item_ids()} | kind, 0.15)

    def _remove(self) -> Step:
        return self.send("POST", "/items/remove", {"queue_id": self._id(), "item_ids": self._item_ids()}, 0.15)

    def _items(self) -> Step:
        query = {"queue_id": self._id()} | some({"status": self.random.choice(_STATUSES)}, self.random, 0.4)
        return self.get("/items/list", query | self.pages(), follow_pages=True)

    def _set_status(self) -> Step:
        body = {"queue_id": self._id(), "item_id": self._trace_id(), "status": self.random.choice(_STATUSES)}
        return self.send("POST", "/items/set-status", body | some({"completed_by": self._user()}, self.random, 0.7), 0.15)


class Issues(_InExperiments):
    domain = "issues"
    #: Databases disagree on how other letters are sorted.
    _NAMES = [text for text in TEXTS if text not in ("İ", "Σς")]
    slots = {"issue": "iss-" + "0" * 32}

    def begin(self) -> Iterator[Step]:
        yield from super().begin()
        for name, place in (("run", "experiment"), ("foreign", "another")):
            yield _post(f"{_V2}/runs/create", {"experiment_id": f"${{{place}}}", "start_time": 1}, capture={name: "run.info.run_id"})
        for number in range(_TRACES):
            yield self._trace(number)

    def operations(self) -> dict[Any, int]:
        return {
            self._create: 10, self._get: 3, self._update: 8, self._search: 14, self._attach: 6, self._delete_trace: 1, self._create_trace: 1,
        }

    def _id(self) -> str:
        if self.maybe(0.15):
            return self.random.choice(["iss-own-1${unique}", "iss-missing", "missing", "%23", "iss-%C3%A9"])
        return f"${{{self.slot('issue')}}}"

    def _run(self) -> str:
        return self.random.choice(["${run}"] * 4 + ["${foreign}", "", "missing", "a#b", " ${run}"])

    def _severity(self) -> Any:
        return self.random.choice(["low", "medium", "high", "not_an_issue"] * 5 + ["LOW", "urgent", "", " high"])

    def _status(self) -> Any:
        return self.random.choice(["pending", "rejected", "resolved"] * 6 + ["PENDING", "open", "", " pending"])

    def _categories(self) -> list[Any]:
        usual = ["latency", "Cost", "LATENCY", " safety ", "quality", "", "é", "x" * 250, "x" * 251, "a,b", "%"]
        return [self.random.choice(usual) for _ in range(self.random.choice([0, 1, 1, 2, 3, 5, 100 if self.maybe(0.1) else 4]))]

    def _fields(self) -> dict[str, Any]:
        return {
            "status": self._status(), "severity": self._severity(), "root_causes": [self.text() for _ in range(self.random.randrange(3))],
            "categories": self._categories(), "last_seen_timestamp": self.random.choice(["1700000000000", 1, 0, 1600000000000, -1, "x", 2**62]),
            "metadata": self.random.choice([{"k": "v"}, {"k": ""}, {"": "v"}, {"é": "日本"}, {}, {"a": "1", "b": "2"}]),
        }

    def _create(self) -> Step:
        experiment = self.experiment()
        body = {"experiment_id": experiment, "name": self.random.choice(self._NAMES), "description": self.text()}
        # MLflow also counts traces of other experiments, so only issues of this one get traces.
        capture = {self.slot("issue"): "issue.issue_id"} if experiment == "${experiment}" else {}
        fields = self._fields() | {
            "source_run_id": self._run(), "created_by": self.random.choice(["ann", "", "u" * 256, "é"]),
            "issue_id": self.random.choice([f"iss-own-{self.random.randrange(4)}${{unique}}", "iss-", "x", "iss-é", "iss-a b", "", "iss-" + "a" * 40]),
        }
        return self.send("POST", "", body | some(fields, self.random, 0.2), 0.15, capture=capture)

    def _get(self) -> Step:
        return self.get(f"/{self._id()}", {})

    def _update(self) -> Step:
        identity = self._id()
        fields = {"name": self.random.choice(self._NAMES), "description": self.text()} | self._fields()
        return self.send("PATCH", f"/{identity}", {"issue_id": identity} | some(fields, self.random, 0.3), 0.15)

    def _attach(self) -> Step:
        """Returns an assessment that attaches a trace to an issue."""
        number = self.random.randrange(_TRACES - 2)
        assessment = {
            "assessment_name": f"${{{self.slot('issue')}}}",
            "source": {"source_type": "HUMAN", "source_id": "ann"},
            "create_time": "2025-01-01T00:00:00Z",
            "last_update_time": "2025-01-01T00:00:00Z",
            "issue": {"issue_name": "n"},
        }
        identity = f"a-{self.random.randrange(2**40):x}"
        return Step("attach", "POST", f"/api/3.0/mlflow/traces/tr-{number}${{unique}}/assessments",
                    json={"assessment": assessment | {"assessment_id": identity}}, has_json=True)

    def _filter(self) -> str:
        value = self.random.choice(["'pending'", "'resolved'", "'${run}'", "'${foreign}'", '"rejected"', "5", "pending", "''", "'it''s'", "'a AND b'"])
        keys = ["status", "source_run_id"] * 3 + ["`status`", "STATUS", "name", '"status"', "attributes.status"]
        comparison = self.random.choice(keys)
        comparison += self.random.choice([" = ", " != ", "=", "  =  ", " > ", " LIKE ", " IN ", " IS ", " <> "]) + value
        more = self.random.choice([""] * 4 + [" AND status = 'pending'", " and source_run_id != '${run}'", " OR status = 'x'", " AND", ";", " AND  "])
        return self.random.choice(["", " ", "nonsense", "(status = 'pending')", "status"]) if self.maybe(0.1) else comparison + more

    def _search(self) -> Step:
        orders = ["name", "name DESC", "severity", "severity desc", "status", "status DESC", "created_timestamp", "created_timestamp DESC"]
        orders += ["last_seen_timestamp DESC", "last_updated_timestamp", "id", "name UP", "", "name  ASC", " name", "`name`", "name, status"]
        # The rest of the order is not specified.
        order = [self.random.choice(orders) for _ in range(self.random.choice([0, 1, 2]))]
        fields = {
            "include_trace_count": self.random.choice([True, True, False, "true"]), "include_total_count": self.random.choice([True, True, False]),
            "view": self.random.choice(["basic", "full", "FULL", "other", ""]), "filter_string": self._filter(),
            "name": self.random.choice([*self._NAMES, "", "a", "%", "_"]), "statuses": [self._status() for _ in range(self.random.randrange(3))],
            "severities": [self._severity() for _ in range(self.random.randrange(3))], "categories": self._categories()[:3],
            "order_by": [*order, "created_timestamp"], "max_results": self.random.choice([1, 2, 3, 100, 0, -1, 50001, "2", 1.5]),
            "page_token": self.random.choice(["", "", "x", "é", "e30="]),
        }
        body = {"experiment_id": self.experiment()} | some(fields, self.random, 0.2)
        return self.send("POST", "/search", body, 0.1, follow_pages=True)


def _post(path: str, body: dict[str, Any], capture: dict[str, str] | None = None) -> Step:
    return Step(f"POST {path}", "POST", path, json=body, has_json=True, capture=capture or {})
