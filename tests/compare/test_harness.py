"""Tests that the comparison detects differences. They need no server."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compare.allowed import AllowList, Entry
from tests.compare.differences import Difference, differences
from tests.compare.placeholders import Placeholders
from tests.compare.runner import Runner, excuse_nothing, run
from tests.compare.scenario import Scenario, Step, load, substitute
from tests.compare.times import Clock
from tests.support.http import Answer, Request

_RUN_A, _RUN_B = "a" * 32, "b" * 32


class FakeSide:
    """A server that is replaced by a function."""

    name = "fake"

    def __init__(self, answer: Callable[[Request], Answer]):
        self.send = answer


def _json(body: object, status: int = 200) -> Answer:
    return Answer(status, "json", body)


@pytest.mark.parametrize(
    ("reference", "subject", "fields"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["body.a"]),
        ({"a": 0.0}, {"a": -0.0}, ["body.a"]),
        ({"a": float("nan")}, {"a": float("nan")}, []),
        ({"a": "NaN"}, {"a": float("nan")}, ["body.a"]),
        ({"a": 1}, {}, ["body.a"]),
        ({}, {"a": None}, ["body.a"]),
        ({"a": True}, {"a": 1}, ["body.a"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["body.a[0]", "body.a[1]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["body.a.length"]),
        ({"a": {"b": []}}, {"a": {"b": {}}}, ["body.a.b"]),
    ],
)
def test_differences_between_bodies(reference, subject, fields):
    assert [difference.field for difference in differences(_json(reference), _json(subject))] == fields


def test_pages_for_people_are_not_read_but_must_not_be_json():
    page, other = Answer(404, "html", "<html>gone"), Answer(404, "html", "<html>not here")
    assert not differences(page, other)
    assert differences(page, dataclasses.replace(other, status=405))
    assert {difference.field for difference in differences(page, _json({}, 404))} == {"kind", "body"}


def test_plain_text_is_read():
    assert differences(Answer(200, "html", "3.17.2"), Answer(200, "html", "3.17.1"))


def test_ids_get_the_name_of_their_order_everywhere():
    placeholders = Placeholders(Clock())
    placeholders.learn({"run": {"info": {"run_id": _RUN_A, "experiment_id": "710000001"}}})
    placeholders.learn({"runs": [{"info": {"run_id": _RUN_B}}]})
    named = placeholders.apply({
        "message": f"Run {_RUN_B} in 710000001, not in 7100000011",
        "artifact_uri": f"s3://bucket/710000001/{_RUN_A}/artifacts",
        "experiment_id": "0",
    })
    assert named == {
        "message": "Run <run 2> in <experiment 1>, not in 7100000011",
        "artifact_uri": "s3://bucket/<experiment 1>/<run 1>/artifacts",
        "experiment_id": "0",
    }


def test_short_ids_are_replaced_only_where_they_can_be_nothing_else():
    placeholders = Placeholders(Clock())
    placeholders.learn({"experiment_id": "5"})
    named = placeholders.apply({
        "experiment_id": " 05",
        "message": "No Experiment with id=5 exists, but 5 apples. Expected: ['5', '6']",
        "artifact_location": "s3://bucket/5",
        "params": [{"key": "p", "value": "5"}],
    })
    assert named == {
        "experiment_id": " 0<experiment 1>",
        "message": "No Experiment with id=<experiment 1> exists, but 5 apples. Expected: ['<experiment 1>', '6']",
        "artifact_location": "s3://bucket/<experiment 1>",
        "params": [{"key": "p", "value": "5"}],
    }


def test_python_sets_are_sorted_and_dictionaries_left_alone():
    apply = Placeholders(Clock()).apply
    assert apply("one of {'b', 'a'}") == apply("one of {'a', 'b'}")
    assert apply("{'b': 'a'}") == "{'b': 'a'}"


def test_tags_have_no_order_but_histories_have():
    apply = Placeholders(Clock()).apply
    assert apply({"tags": [{"key": "b"}, {"key": "a"}]}) == apply({"tags": [{"key": "a"}, {"key": "b"}]})
    assert apply({"metrics": [{"step": 2}, {"step": 1}]}) != apply({"metrics": [{"step": 1}, {"step": 2}]})
    latest = {"data": {"metrics": [{"key": "b"}, {"key": "a"}]}}
    assert apply(latest)["data"]["metrics"] == [{"key": "a"}, {"key": "b"}]


def _experiment(created: int, updated: int) -> dict[str, int]:
    return {"creation_time": created, "last_update_time": updated}


def test_a_time_is_named_by_the_request_that_made_it():
    clock = Clock()
    apply = Placeholders(clock).apply
    before = _now()
    clock.tick()
    first = _now()
    clock.tick()
    second = _now()
    assert apply(_experiment(before, first)) == _experiment("<time before the first request>", "<time of request 1>")
    assert apply(_experiment(first, second)) == _experiment("<time of request 1>", "<time of request 2>")
    assert apply(_experiment(second, first)) == _experiment("<time of request 2>", "<time of request 1>")


@pytest.mark.parametrize("offset", [-8 * 3_600_000, 60_000])
def test_times_that_no_request_can_have_made_do_not_hide(offset):
    clock = Clock()
    clock.tick()
    wrong = _now() + offset
    assert Placeholders(clock).apply(_experiment(wrong, 0)) == _experiment(wrong, 0)


def test_a_time_that_nobody_has_chosen_is_left_alone():
    assert Placeholders(Clock()).apply({"last_update_time": 5, "end_time": (now := _now())}) == {
        "last_update_time": 5, "end_time": now
    }


def _now() -> int:
    return time.time_ns() // 1_000_000


def test_generated_names_hide_in_the_tag_only_if_it_is_the_same():
    run = {"info": {"run_name": "calm-owl-7"}, "data": {"tags": [{"key": "mlflow.runName", "value": "calm-owl-7"}]}}
    other = {"info": {"run_name": "calm-owl-7"}, "data": {"tags": [{"key": "mlflow.runName", "value": "wild-owl-8"}]}}
    apply = Placeholders(Clock()).apply
    assert apply(run)["data"]["tags"][0]["value"] == "<generated name>"
    assert apply(other)["data"]["tags"][0]["value"] == "wild-owl-8"


def test_a_missing_page_token_is_a_difference():
    step = Step("search", "POST", "/x", json={}, has_json=True, follow_pages=True)
    more, last = _json({"runs": [], "next_page_token": "abc"}), _json({"runs": []})
    reports = list(Runner(FakeSide(lambda _: more), FakeSide(lambda _: last), variables={}).play(step))
    assert len(reports) == 1
    assert "next_page_token" in reports[0]


def test_pages_are_followed_with_each_side_s_own_token():
    def paged(token: str) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            asked = json.loads(request.body).get("page_token")
            return _json({"next_page_token": token} if asked is None else {"is mine": asked == token})
        return answer

    step = Step("search", "POST", "/x", json={}, has_json=True, follow_pages=True)
    runner = Runner(FakeSide(paged("abc")), FakeSide(paged("xyz")), variables={})
    assert not list(runner.play(step))
    assert runner.requests == 2


def _two_pages(first: list[str], second: list[str]) -> FakeSide:
    """Returns a server with two pages of runs."""
    def runs(ids: list[str]) -> list[dict]:
        return [{"info": {"run_id": run}} for run in ids]

    def answer(request: Request) -> Answer:
        if "page_token" in json.loads(request.body):
            return _json({"runs": runs(second)})
        return _json({"runs": runs(first), "next_page_token": "more"})

    return FakeSide(answer)


@pytest.mark.parametrize(
    ("first", "second", "fields"),
    [
        (["a", "c"], ["b"], []),
        (["a"], ["b", "c"], ["body.pages[0]", "body.pages[1]"]),
        (["a", "b"], ["b"], ["body.runs[2].info.run_id"]),
    ],
)
def test_joined_pages_are_compared_as_one(first, second, fields):
    step = Step("search", "POST", "/x", json={}, has_json=True, join_pages=True, unordered={"runs": "info.run_id"})
    reports = list(Runner(_two_pages(["a", "b"], ["c"]), _two_pages(first, second), variables={}).play(step))
    assert bool(reports) == bool(fields)
    assert all(field in reports[0] for field in fields)


@pytest.mark.parametrize(
    ("keys", "in_order"),
    [(["info.run_id"], True), (["-info.run_id"], False), (["info.name", "info.run_id"], False), (["-info.name"], True)],
)
def test_each_side_s_own_order_is_checked(keys, in_order):
    runs = [{"info": {"name": "y", "run_id": "a"}}, {"info": {"name": "x", "run_id": "b"}}]
    step = Step("search", "POST", "/x", json={}, has_json=True, in_order={"runs": keys}, unordered={"runs": "*"})
    side = FakeSide(lambda _: _json({"runs": runs}))
    reports = list(Runner(side, side, variables={}).play(step))
    assert [report.count("<not in order>") for report in reports] == ([] if in_order else [2])


def test_what_only_one_side_can_be_captured_from_is_a_difference():
    step = Step("create", "POST", "/x", json={}, has_json=True, capture={"id": "run.id"})
    runner = Runner(FakeSide(lambda _: _json({"run": {"id": "1"}})), FakeSide(lambda _: _json({}, 400)), variables={})
    assert "capture.id" in next(runner.play(step))


_REFUSAL = {"status": 400, "error_code": "E", "message": "already exists.*"}


def _entry(**fields: object) -> Entry:
    """Returns an entry, by default for a response where stock MLflow quotes SQL and this server
    reports that something already exists.
    """
    reference = {"status": 400, "error_code": "E", "message": "SQL.*"}
    return Entry.of({"step": "create [*", "steps": 1, "reference": reference, "ours": _REFUSAL, "reason": "words"} | fields)


def _error(message: str, status: int = 400, code: str = "E") -> Answer:
    return _json({"error_code": code, "message": message}, status)


def _left(entry: Entry, step: str, reference: Answer, subject: Answer) -> list[str]:
    """Returns the fields of the differences that the entry does not accept."""
    found = differences(reference, subject)
    assert found
    return [each.field for each in AllowList([entry]).excuse(step, found, reference, subject)]


def test_an_entry_accepts_what_it_says_and_nothing_else():
    entry, reference = _entry(), _error("SQL at line 1")
    assert _left(entry, "create [x]", reference, _error("already exists.")) == []
    assert _left(entry, "other [x]", reference, _error("already exists.")) == ["body.message"]
    assert _left(entry, "create [x]", reference, _error("oops")) == ["body.message"]
    assert _left(entry, "create [x]", _error("oops"), _error("already exists.")) == ["body.message"]
    assert _left(entry, "create [x]", reference, _error("already exists.", 500)) == ["status", "body.message"]
    assert _left(entry, "create [x]", reference, _error("already exists.", code="F")) == ["body.error_code", "body.message"]
    of_code = _json({"error_code": "E", "message": "already exists.", "sqlstate": "X"}, 400)
    assert _left(entry, "create [x]", reference, of_code) == ["body.sqlstate"]
    more = _json({"error_code": "E", "message": "already exists.", "stack": "secret"}, 400)
    assert _left(entry, "create [x]", reference, more) == ["body.message", "body.stack"]


def test_an_entry_about_errors_accepts_no_other_field():
    reference = dataclasses.replace(_error("SQL"), headers={"Retry-After": "1"})
    assert _left(_entry(), "create [x]", reference, _error("already exists")) == ["headers.Retry-After"]


def test_a_page_for_people_in_place_of_a_refusal():
    entry = _entry(reference={"status": 500, "kind": "html"})
    page = Answer(500, "html", "<html>", {"Content-Type": "text/html"})
    refusal = dataclasses.replace(_error("already exists"), headers={"Content-Type": "application/json"})
    assert _left(entry, "create [x]", page, refusal) == []
    assert _left(entry, "create [x]", dataclasses.replace(page, status=502), refusal)
    assert _left(entry, "create [x]", page, dataclasses.replace(refusal, body={"error_code": "E", "message": "no"}))


def test_an_answer_in_place_of_an_error_is_bound_by_its_body():
    entry = _entry(ours={"status": 200, "body": r'\{"id": "\d+"\}'})
    assert _left(entry, "create [x]", _error("SQL"), _json({"id": "1"})) == []
    assert _left(entry, "create [x]", _error("SQL"), _json({"id": "1", "more": 2}))


def test_a_bare_nan_excuses_no_other_number():
    sides = {"reference": {"status": 200, "value": "NaN"}, "ours": {"status": 200, "value": '"NaN"'}}
    entry = _entry(field="body.metrics*.value", **sides)

    def left(reference: object, subject: object) -> list[str]:
        return _left(entry, "create [x]", *(_json({"metrics": [{"value": value}]}) for value in (reference, subject)))

    assert left(float("nan"), "NaN") == []
    wrong = [(1.0, "NaN"), (float("nan"), 1.0), ("NaN", float("nan")), (1.0, 2.0), ("nan", "NaN"), (float("inf"), "NaN")]
    assert all(left(*values) == ["body.metrics[0].value"] for values in wrong)


def test_an_entry_applies_to_as_many_steps_as_it_says():
    def miscounted(steps: int, is_sample: bool = False) -> list[str]:
        allowed = AllowList([_entry(steps=steps)])
        for number in range(2):
            reference, subject = _error("SQL"), _error("already exists")
            assert not allowed.excuse(f"create [{number}]", differences(reference, subject), reference, subject)
            # Equal responses are not counted.
            assert not allowed.excuse(f"create [{number}]", [], reference, subject)
        assert allowed.excused_steps == 2
        return allowed.miscounted(is_sample)

    assert not miscounted(2)
    assert miscounted(1)
    assert miscounted(3)
    # In a sample, the entry may apply to fewer steps.
    assert not miscounted(3, is_sample=True)
    assert miscounted(1, is_sample=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"stepps": 1},
        {"steps": 0},
        {"reason": " "},
        {"ours": _REFUSAL | {"message": ".*"}},
        {"ours": _REFUSAL | {"message": "(.|\n)+"}},
        {"ours": _REFUSAL | {"subject": "x"}},
        {"ours": {"status": 400, "error_code": "E"}},
        {"ours": {"status": 400, "message": "already exists"}},
        {"ours": {"status": 200}},
        {"ours": {"status": 200, "body": ".*"}},
        {"reference": {"status": 500, "kind": "html", "message": "x"}},
        {"field": "body.x"},
    ],
)
def test_an_entry_that_binds_too_little_is_refused(fields):
    with pytest.raises((TypeError, ValueError)):
        _entry(**fields)


@pytest.mark.parametrize("option", ["unordered", "in_order"])
def test_a_list_that_no_answer_has_is_a_mistake_of_the_scenario(option):
    def missing(name: str, *answers: dict) -> list[str]:
        lists = {option: {name: "*" if option == "unordered" else ["n"]}}
        steps = [Step(f"s [{n}]", "GET", f"/{n}", family="s", **lists) for n in range(len(answers))]
        side = FakeSide(lambda request: _json(answers[int(request.path[1:])]))
        return run(Scenario("x", "", False, {}, steps), side, side, excuse_nothing)[0]

    runs = [{"n": 1}, {"n": 2}]
    assert not missing("runs", {"runs": runs})
    assert not missing("runs", {}, {"runs": runs})
    assert missing("rusn", {"runs": runs})
    assert missing("runs", {"runs": 5}, {})


def test_each_of_several_subjects_is_compared_with_the_reference():
    sides = [FakeSide(lambda _, number=number: _json({"n": number})) for number in (1, 1, 2, 3)]
    runner = Runner(*sides, variables={})
    reports = list(runner.play(Step("ask", "GET", "/x")))
    assert [report.splitlines()[-1].strip() for report in reports] == ["subject:   2", "subject:   3"]
    assert runner.requests == 1


def test_a_scenario_reports_the_step_and_the_request():
    scenario = Scenario("s", "", False, {"who": "me"}, [Step("ask", "GET", "/${who}", query={"a": "${unique}"})])
    one, two = FakeSide(lambda _: _json({"a": 1})), FakeSide(lambda _: _json({"a": 2}))
    reports, requests = run(scenario, one, two, excuse_nothing)
    assert requests == 1
    assert reports[0].startswith("s / ask\n    GET /me ? ")


def test_scenario_files(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text(
        "about: x\n"
        "steps:\n"
        "  - post: runs/create\n"
        "    each: {field: [a, b], value: [1, null]}\n"
        '    json: {"${field}": "${value}", long: !repeat [x, 3], list: !many {count: 2, item: {n: "${i}", t: "k${i}"}}}'
    )
    steps = load(file).steps
    assert [step.name for step in steps][:2] == ["POST runs/create [a | 1]", "POST runs/create [a | null]"]
    assert json.loads(steps[3].request({}).body) == {
        "b": None, "long": "xxx", "list": [{"n": 0, "t": "k0"}, {"n": 1, "t": "k1"}],
    }
    assert steps[0].path == "/api/2.0/mlflow/runs/create"


def test_a_sample_has_every_value_of_every_variable_but_of_few():
    sampled = 0
    for file in Path(__file__).with_name("scenarios").glob("*.yaml"):
        scenario = load(file)
        sampled += len(scenario.steps) - len(scenario.sample().steps)
        assert _values(scenario) == _values(scenario.sample()), file.stem
    assert sampled > 1000


def _values(scenario: Scenario) -> set[tuple[str, str, str]]:
    return {
        (step.family, name, repr(value))
        for step in scenario.steps
        for name, value in step.variables.items()
        if name != "case" and not step.few
    }


def test_a_sample_has_one_in_so_many_of_few(tmp_path):
    file = tmp_path / "file.yaml"
    entry = "{name: one, few: 2, each: {v: [a, b, c]}, get: x, then: [{name: two, get: y}]}"
    file.write_text(f"about: x\nsteps:\n  - {entry}\n  - {{name: three, get: z}}\n")
    whole = load(file)
    assert len(whole.steps) == 7
    assert [step.name for step in whole.sample().steps] == ["one [a]", "two [a]", "one [c]", "two [c]", "three"]
    file.write_text("about: x\nsteps:\n  - {name: one, few: 2, sample: 2, each: {v: [a, b]}, get: x}\n")
    with pytest.raises(ValueError, match="not both"):
        load(file)


def test_steps_that_follow_each_case(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text(
        "about: x\nsteps:\n"
        "  - {name: one, each: {v: [a, b]}, get: x, then: [{name: two, post: y, json: {v: '${v}', n: '${case}'}}]}\n"
        "  - {name: three, get: x, then: [{name: four, get: y}]}\n"
    )
    steps = load(file).steps
    assert [step.name for step in steps] == ["one [a]", "two [a]", "one [b]", "two [b]", "three", "four"]
    assert json.loads(steps[3].request({}).body) == {"v": "b", "n": 1}


def test_substitution_keeps_types_and_spreads():
    known = {"n": 5, "o": {"b": 2}}
    assert substitute({"a": "${n}", "t": "n=${n}", "...": "${o}"}, known) == {"a": 5, "t": "n=5", "b": 2}
