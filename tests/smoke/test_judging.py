"""Tests how the smoke test of a stack in AWS evaluates responses, and what it stores of them."""

import json
import re
from collections.abc import Mapping

import pytest

from tools.smoke import bodies, gateway, paths, platform, report
from tools.smoke.__main__ import CHECKS, put
from tools.smoke.check import DIFFERS, EXPECTED, OPEN, Check, NotAsked, Outcome, Result
from tools.smoke.cleanup import Cleanup
from tools.smoke.spending import MOST_DOLLARS, Deadline, Spending, Spent

_NAMES = ["a b.txt", "a=b.txt", "a@b.txt", "é.txt", "a+b.txt", "plain.txt"]


def _signatures(twice: Mapping[str, int], once: Mapping[str, int], listed: list[str] | None = None) -> dict:
    of_names = {
        name: {"as the package signs": twice.get(name, 200), "with a path that is encoded once": once.get(name, 200)} for name in _NAMES
    }
    return of_names | {"listed": _NAMES if listed is None else listed}


_STRANGE = {name: 403 for name in _NAMES[:-1]}
_API = {
    "closed": False, "should be closed": False,
    "writes a log": False, "should write a log": False, "warnings": 0,
}
_RATE = {"rate": 1000.0, "burst": 1000.0}


@pytest.mark.parametrize(
    "judge, facts, expected",
    [
        (paths.judge_signatures, _signatures({}, _STRANGE), "encoded twice"),
        (paths.judge_signatures, _signatures({}, {}, ["a%20b.txt", *_NAMES[1:]]), "under other names"),
        (paths.judge_signatures, _signatures({"é.txt": 403}, {}), "encoded once"),
        (paths.judge_signatures, _signatures({"é.txt": 403}, {"é.txt": 403}), "some are refused"),
        (paths.judge_signatures, _signatures(_STRANGE | {"plain.txt": 403}, {}), "no signature is taken"),
        (paths.judge_signatures, _signatures({"é.txt": 500}, {}), "something else"),
        (paths.judge_double, {"status": 200, "listed": ["twiceA.txt"]}, "decoded twice"),
        (paths.judge_double, {"status": 200, "listed": ["twice%41.txt"]}, "decoded once"),
        (paths.judge_double, {"status": 200, "listed": ["twice%2541.txt"]}, "not decoded"),
        (paths.judge_double, {"status": 200, "listed": []}, "something else"),
        (paths.judge_double, {"status": 200, "listed": ["twiceA.txt", "twice%41.txt"]}, "something else"),
        (paths.judge_double, {"status": 403, "listed": []}, "refused"),
        (paths.judge_slashes, {"tracking": 200, "registry": 404}, "tracking alone"),
        (paths.judge_slashes, {"tracking": 200, "registry": 200}, "all"),
        (paths.judge_slashes, {"tracking": 403, "registry": 403}, "refused"),
        (paths.judge_slashes, {"tracking": 404, "registry": 404}, "none"),
        (paths.judge_slashes, {"tracking": 500, "registry": 404}, "something else"),
        (bodies.judge_lengths, {"4.4 MB": 200, "4.8 MB": 413, "11 MB": 413}, "413"),
        (bodies.judge_lengths, {"4.4 MB": 200, "4.8 MB": 200, "11 MB": 413}, "more is taken"),
        (bodies.judge_lengths, {"4.4 MB": 413, "4.8 MB": 413, "11 MB": 413}, "less is taken"),
        (bodies.judge_lengths, {"4.4 MB": 200, "4.8 MB": 500, "11 MB": 413}, "refused otherwise"),
        (bodies.judge_empty, {"with a length of 0": 200, "in chunks": 200, "listed": ["empty-chunked.txt", "empty-length.txt"]}, "both are taken"),
        (bodies.judge_empty, {"with a length of 0": 200, "in chunks": 501, "listed": ["empty-length.txt"]}, "no chunks"),
        (bodies.judge_empty, {"with a length of 0": 200, "in chunks": 200, "listed": ["empty-length.txt"]}, "lost"),
        (bodies.judge_empty, {"with a length of 0": 400, "in chunks": 200, "listed": []}, "none is taken"),
        (bodies.judge_gzip, {"status": 200, "the trace is there": True}, "arrives whole"),
        (bodies.judge_gzip, {"status": 400, "the trace is there": False}, "broken, and refused"),
        (bodies.judge_gzip, {"status": 200, "the trace is there": False}, "lost"),
        (bodies.judge_gzip, {"status": 500, "the trace is there": False}, "something else"),
        (bodies.judge_delete, {"deleting": 200, "afterwards": 404}, "deleted"),
        (bodies.judge_delete, {"deleting": 400, "afterwards": 200}, "body lost"),
        (bodies.judge_delete, {"deleting": 403, "afterwards": 200}, "signature refused"),
        (bodies.judge_delete, {"deleting": 200, "afterwards": 200}, "something else"),
        (gateway.judge_challenge, {"status": 401, "headers": ["x-amzn-remapped-www-authenticate"]}, "renamed"),
        (gateway.judge_challenge, {"status": 401, "headers": ["www-authenticate"]}, "kept"),
        (gateway.judge_challenge, {"status": 401, "headers": []}, "dropped"),
        (gateway.judge_challenge, {"status": 403, "headers": []}, "something else"),
        (gateway.judge_cookies, {"signing in": 303, "cookies set": 2, "with them": 200, "without": 401}, "arrive"),
        (gateway.judge_cookies, {"signing in": 303, "cookies set": 1, "with them": 200, "without": 401}, "not both are set"),
        (gateway.judge_cookies, {"signing in": 303, "cookies set": 2, "with them": 401, "without": 401}, "do not arrive"),
        (gateway.judge_cookies, {"signing in": 401, "cookies set": 0, "with them": 401, "without": 401}, "something else"),
        (gateway.judge_address, {"lines with an address": 2, "of them forged": 0}, "the caller's"),
        (gateway.judge_address, {"lines with an address": 2, "of them forged": 1}, "forged"),
        (gateway.judge_address, {"lines with an address": 0, "of them forged": 0}, "none"),
        (gateway.judge_settings, {"Api": _API, "UsersApi": _API}, "as asked"),
        (gateway.judge_settings, {"Api": _API | {"closed": True}}, "not as asked"),
        (gateway.judge_settings, {"Api": _API | {"should write a log": True}}, "not as asked"),
        (gateway.judge_settings, {"Api": _API | {"warnings": 1}}, "warnings"),
        (gateway.judge_rates, _RATE | {"requests": 1500, "seconds": 1, "statuses": {"200": 1400, "429": 100}}, "limited"),
        (gateway.judge_rates, _RATE | {"requests": 1500, "seconds": 1, "statuses": {"200": 1400, "503": 100}}, "no sandboxes"),
        (gateway.judge_rates, _RATE | {"requests": 1500, "seconds": 30, "statuses": {"200": 1500}}, "not reached"),
        (gateway.judge_rates, {"rate": 50.0, "burst": 50.0, "requests": 1500, "seconds": 10, "statuses": {"200": 1500}}, "not limited"),
        (platform.judge_cold_starts, {"init ms": {"median": 80, "most": 900}}, "short"),
        (platform.judge_cold_starts, {"init ms": {"median": 800, "most": 900}}, "long"),
        (platform.judge_cold_starts, {"logs": "reading the logs: AccessDenied"}, "no report"),
        (platform.judge_removals, {"found": True, "gone after s": 8.0}, "delivered"),
        (platform.judge_removals, {"found": True, "gone after s": None}, "not delivered"),
        (platform.judge_removals, {"found": False}, "not indexed"),
        (platform.judge_recovery, {"a": {"status": "ENABLED", "from": "2030"}, "b": {"status": "ENABLED", "from": "2030"}}, "enabled"),
        (platform.judge_recovery, {"a": {"status": "ENABLED", "from": "2030"}, "b": {"status": "DISABLED", "from": None}}, "disabled"),
        (platform.judge_recovery, {"a": {"status": "ENABLED", "from": None}, "b": {"status": "ENABLED", "from": "2030"}}, "no time yet"),
        (platform.judge_restoration, {"seconds": 200.0, "same keys": True, "gone after s": 9.0}, "restored"),
        (platform.judge_restoration, {"seconds": 200.0, "same keys": False, "gone after s": 9.0}, "another table"),
        (platform.judge_restoration, {"seconds": 200.0, "same keys": True, "gone after s": None}, "not deleted"),
        (gateway.judge_warnings, {"the warning after s": 3.0, "lines of INFO": 0}, "shown"),
        (gateway.judge_warnings, {"the warning after s": 3.0, "lines of INFO": 2}, "INFO as well"),
        (gateway.judge_warnings, {"the warning after s": None, "lines of INFO": 0}, "hidden"),
        (gateway.judge_tags, {"Api": True, "stage of Api": True}, "tagged"),
        (gateway.judge_tags, {"Api": False, "stage of Api": True}, "stages alone"),
        (gateway.judge_tags, {"Api": True, "stage of Api": False}, "not billed by tag"),
        (gateway.judge_tags, {}, "not billed by tag"),
        (platform.judge_restoration, {"seconds": None, "same keys": True}, "takes longer"),
    ],
)
def test_answers_are_judged(judge, facts: dict, expected: str):
    [check] = [check for check in CHECKS if check.judge is judge]
    assert judge(facts) == expected
    assert check.outcome(expected).means


@pytest.mark.parametrize(
    "own, other, own_together, other_together, expected",
    [
        (True, False, True, False, "both"),
        (True, False, True, True, "not in transactions"),
        (True, False, False, False, "no transactions"),
        (True, True, True, True, "not even for single calls"),
        (False, False, False, False, "not even for single calls"),
        (True, False, False, True, "something else"),
    ],
)
def test_leading_keys(own: bool, other: bool, own_together: bool, other_together: bool, expected: str):
    calls = {"GetItem": (own, other), "TransactGetItems": (own_together, other_together)}
    facts = {f"{call} of {whose} key": allowed for call, both in calls.items() for whose, allowed in zip(("own", "other"), both, strict=True)}
    assert platform.judge_leading_keys(facts) == expected


def test_each_check_has_an_answer_that_is_counted_on_and_one_that_is_not():
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        verdicts = {outcome.verdict for outcome in check.outcomes.values()}
        assert EXPECTED in verdicts and verdicts & {DIFFERS, OPEN}, check.name


def _check(ask) -> Check:
    return Check("a check", "Is it so?", {"yes": Outcome(EXPECTED, "It is."), "no": Outcome(DIFFERS, "It is not.")}, ask, lambda facts: facts["said"])


def _raise(error: Exception):
    raise error


def test_what_goes_wrong_is_an_answer():
    assert put(None, _check(lambda _: {"said": "yes"})).outcome == "yes"
    for error in (NotAsked("no right"), Spent("a dollar")):
        result = put(None, _check(lambda _, error=error: _raise(error)))
        assert (result.outcome, result.verdict, result.facts) == ("not asked", OPEN, {"why": str(error)})
    failed = put(None, _check(lambda _: {}))
    assert (failed.outcome, failed.verdict) == ("something else", DIFFERS)


def test_people_are_told_what_each_answer_means_and_where_to_report_it():
    told = report.told(Result(_check(None), "no", {"status": 500}))
    assert "Is it so?" in told and '{"status": 500}' in told
    assert "   yes (as expected): It is." in told and "-> no (differs): It is not." in told
    assert "Report it at " in told
    assert "Report it" not in report.told(Result(_check(None), "yes", {"status": 200}))


def test_nothing_is_kept_that_tells_whose_stack_it_is():
    facts = {
        "why": "User: arn:aws:iam::123456789012:user/ann is not authorized, says https://abc123.execute-api.eu-central-1.amazonaws.com/version",
        "error": ["host abc123.execute-api.eu-central-1.amazonaws.com from 198.51.100.7, 123456789012, AKIAIOSFODNN7EXAMPLE, mlflow-token_abc.def"],
        "table": {"mlflow-Table-1ABC": "is there"},
    }
    results = [Result(_check(None), "no", facts)]
    for text in (
        json.dumps(report.redacted(report.as_json(results, {"version": 1}), ["mlflow-Table-1ABC"])),
        report.redacted(report.as_table(results), ["mlflow-Table-1ABC"]),
    ):
        for secret in ("123456789012", "abc123", "198.51.100.7", "AKIA", "mlflow-token_", "1ABC", "ann"):
            assert secret not in text
        assert "is there" in text


def test_the_result_file_is_json_and_the_table_has_a_row_for_each_check():
    results = [Result(check, next(iter(check.outcomes))) for check in CHECKS]
    kept = json.loads(json.dumps(report.as_json(results, {"version": 1})))
    assert [one["name"] for one in kept["checks"]] == [check.name for check in CHECKS]
    assert len(re.findall(r"^\| ", report.as_table(results), re.MULTILINE)) == len(CHECKS) + 1


def test_it_stops_before_a_dollar_is_spent():
    spending = Spending()
    with pytest.raises(Spent):
        for _ in range(1_000_000):
            spending.before()
            # A function that runs until API Gateway's timeout.
            spending.request(11_000_000, 0, 30)
    assert 0.8 < spending.dollars < MOST_DOLLARS
    with pytest.raises(Spent, match="too large"):
        Spending().restoration(50_000_000_000)


def test_all_requests_of_a_run_cost_cents():
    """Computes the cost of 1,500 requests for the rate limit, some hundred other requests of 100 ms
    each, three of them with files, and a restored table.
    """
    spending = Spending()
    for _ in range(1_900):
        spending.request(500, 500, 0.1)
    for length in (4_400_000, 4_800_000, 11_000_000):
        spending.request(length, 0, 2)
    spending.restoration(1_000_000)
    assert spending.dollars < 0.25


def test_questions_end_in_time_to_clean_up():
    assert 0 < Deadline().left <= 15 * 60


def test_cleaning_up_goes_on_after_a_step_that_fails():
    done, cleanup = [], Cleanup()
    cleanup.add("first", lambda: done.append("first"))
    cleanup.add("second", lambda: _raise(NotAsked("no right")))
    cleanup.add("third", lambda: done.append("third"))
    assert cleanup.run() == ["second: no right"]
    assert done == ["third", "first"]
    assert cleanup.run() == []
