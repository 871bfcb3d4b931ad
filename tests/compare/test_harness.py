"""The comparison must notice what it is there for. These tests need no server."""

import dataclasses
import json
from collections.abc import Callable

import pytest

from tests.compare.allowed import AllowList, Entry
from tests.compare.differences import Difference, differences
from tests.compare.placeholders import Placeholders
from tests.compare.runner import Runner, run
from tests.compare.scenario import Scenario, Step, load, substitute
from tests.support.http import Answer, Request

_RUN_A, _RUN_B = "a" * 32, "b" * 32


class FakeSide:
    """A server that is a function."""

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
    placeholders = Placeholders()
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
    placeholders = Placeholders()
    placeholders.learn({"experiment_id": "5"})
    named = placeholders.apply({
        "experiment_id": " 05",
        "message": "No Experiment with id=5 exists, but 5 apples",
        "artifact_location": "s3://bucket/5",
        "params": [{"key": "p", "value": "5"}],
    })
    assert named == {
        "experiment_id": " 0<experiment 1>",
        "message": "No Experiment with id=<experiment 1> exists, but 5 apples",
        "artifact_location": "s3://bucket/<experiment 1>",
        "params": [{"key": "p", "value": "5"}],
    }


def test_python_sets_are_sorted_and_dictionaries_left_alone():
    apply = Placeholders().apply
    assert apply("one of {'b', 'a'}") == apply("one of {'a', 'b'}")
    assert apply("{'b': 'a'}") == "{'b': 'a'}"


def test_tags_have_no_order_but_histories_have():
    apply = Placeholders().apply
    assert apply({"tags": [{"key": "b"}, {"key": "a"}]}) == apply({"tags": [{"key": "a"}, {"key": "b"}]})
    assert apply({"metrics": [{"step": 2}, {"step": 1}]}) != apply({"metrics": [{"step": 1}, {"step": 2}]})
    latest = {"data": {"metrics": [{"key": "b"}, {"key": "a"}]}}
    assert apply(latest)["data"]["metrics"] == [{"key": "a"}, {"key": "b"}]


def test_implausible_times_do_not_hide():
    experiment = {"lifecycle_stage": "active", "creation_time": 0, "last_update_time": 0}
    assert Placeholders().apply(experiment)["creation_time"] == "<implausible time 0>"


def test_generated_names_hide_in_the_tag_only_if_it_is_the_same():
    run = {"info": {"run_name": "calm-owl-7"}, "data": {"tags": [{"key": "mlflow.runName", "value": "calm-owl-7"}]}}
    other = {"info": {"run_name": "calm-owl-7"}, "data": {"tags": [{"key": "mlflow.runName", "value": "wild-owl-8"}]}}
    apply = Placeholders().apply
    assert apply(run)["data"]["tags"][0]["value"] == "<generated name>"
    assert apply(other)["data"]["tags"][0]["value"] == "wild-owl-8"


def test_a_missing_page_token_is_a_difference():
    step = Step("search", "POST", "/x", json={}, has_json=True, follow_pages=True)
    more, last = _json({"runs": [], "next_page_token": "abc"}), _json({"runs": []})
    reports = list(Runner(FakeSide(lambda _: more), FakeSide(lambda _: last), {}).play(step))
    assert len(reports) == 1
    assert "next_page_token" in reports[0]


def test_pages_are_followed_with_each_side_s_own_token():
    def paged(token: str) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            asked = json.loads(request.body).get("page_token")
            return _json({"next_page_token": token} if asked is None else {"is mine": asked == token})
        return answer

    step = Step("search", "POST", "/x", json={}, has_json=True, follow_pages=True)
    runner = Runner(FakeSide(paged("abc")), FakeSide(paged("xyz")), {})
    assert not list(runner.play(step))
    assert runner.requests == 2


def _two_pages(first: list[str], second: list[str]) -> FakeSide:
    """A server with two pages of runs."""
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
    reports = list(Runner(_two_pages(["a", "b"], ["c"]), _two_pages(first, second), {}).play(step))
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
    reports = list(Runner(side, side, {}).play(step))
    assert [report.count("<not in order>") for report in reports] == ([] if in_order else [2])


def test_what_only_one_side_can_be_captured_from_is_a_difference():
    step = Step("create", "POST", "/x", json={}, has_json=True, capture={"id": "run.id"})
    runner = Runner(FakeSide(lambda _: _json({"run": {"id": "1"}})), FakeSide(lambda _: _json({}, 400)), {})
    assert "capture.id" in next(runner.play(step))


def test_an_excuse_applies_to_what_it_says_and_nothing_else():
    entry = Entry("s", "create [*", "body.message", "words", subject_status="4..", subject="already exists.*")
    allowed = AllowList([entry])
    reference, subject = _json({"message": "SQL"}, 400), _json({"message": "already exists."}, 400)
    message = Difference("body.message", "SQL", "already exists.")
    assert not allowed.excuse("other [x]", message, reference, subject)
    assert not allowed.excuse("create [x]", Difference("status", 400, 500), reference, subject)
    assert not allowed.excuse("create [x]", Difference("body.message", "SQL", "oops"), reference, subject)
    assert not allowed.excuse("create [x]", message, reference, dataclasses.replace(subject, status=500))
    assert allowed.unneeded() == [entry]
    assert allowed.excuse("create [x]", message, reference, subject)
    assert not allowed.unneeded()


def test_a_scenario_reports_the_step_and_the_request():
    scenario = Scenario("s", "", False, {"who": "me"}, [Step("ask", "GET", "/${who}", query={"a": "${unique}"})])
    one, two = FakeSide(lambda _: _json({"a": 1})), FakeSide(lambda _: _json({"a": 2}))
    reports, requests = run(scenario, one, two, lambda *_: False)
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
