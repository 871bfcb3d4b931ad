//! Tests of plans in their displayed form: orders, with and without a filter.

use super::Known::Every;
use super::plans::check;

/// A search without a filter reads the list that is sorted like the search.
#[test]
fn without_a_filter() {
    check(&[
        ("", &[][..], &[][..], "newest first; about 30 read units in 1 request"),
        ("", &["created desc"][..], &[][..], "newest first; about 30 read units in 1 request"),
        ("", &["start_time"][..], &[][..], "walk runs, backwards, equal ones sorted; about 30 read units in 1 request"),
        (
            "",
            &["start_time DESC", "run_name"][..],
            &[][..],
            "walk runs, equal ones sorted; about 30 read units in 1 request",
        ),
        (
            "",
            &["metrics.acc DESC"][..],
            &[("runs", Every(1))][..],
            "walk metrics.`acc` of any value, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["metrics.acc"][..],
            &[("runs", Every(1))][..],
            "walk metrics.`acc` of any number, then metrics.`acc` NaN, backwards, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["metrics.acc", "params.a"][..],
            &[("runs", Every(1))][..],
            "walk metrics.`acc` of any number, then metrics.`acc` NaN, backwards, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["params.a"][..],
            &[("runs", Every(1))][..],
            "walk params.`a` of any value, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["params.a DESC"][..],
            &[("runs", Every(1))][..],
            "walk params.`a` of any value, backwards, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["run_name"][..],
            &[("runs", Every(1))][..],
            "walk name of any value, equal ones sorted; about 102 read units in 2 requests",
        ),
        (
            "",
            &["status DESC"][..],
            &[("runs", Every(1))][..],
            "walk status = 'SCHEDULED', then status = 'RUNNING', then status = 'KILLED', then status = 'FINISHED', then status = 'FAILED'; about 102 read units in 2 requests",
        ),
        (
            "",
            &["status", "metrics.acc"][..],
            &[("runs", Every(1))][..],
            "walk status = 'FAILED', then status = 'FINISHED', then status = 'KILLED', then status = 'RUNNING', then status = 'SCHEDULED', equal ones sorted; about 102 read units in 2 requests",
        ),
        (
            "",
            &["tags.env"][..],
            &[("runs", Every(1))][..],
            "walk tags.env of any value, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["tags.`mlflow.user`"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
        (
            "",
            &["user_id"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
        (
            "",
            &["run_id"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
        (
            "",
            &["artifact_uri"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
    ]);
}

/// Searches can be sorted by end time in either direction. Runs that have not ended come last.
#[test]
fn by_another_time() {
    check(&[
        (
            "",
            &["end_time"][..],
            &[("runs", Every(1))][..],
            "walk end_time of any value, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
        (
            "",
            &["end_time DESC"][..],
            &[("runs", Every(1))][..],
            "walk end_time of any value, backwards, equal ones sorted, then runs without; about 102 read units in 2 requests",
        ),
    ]);
}

/// A walk in the order of the search is narrowed by the other conditions of the filter.
#[test]
fn in_the_order_of_a_list() {
    check(&[
        (
            "metrics.acc > 0.9",
            &["metrics.acc DESC"][..],
            &[("metrics.`acc` in [0.9, ..]", Every(1))][..],
            "walk metrics.`acc` in [0.9, ..]; about 102 read units in 2 requests",
        ),
        (
            "metrics.acc < 0.9",
            &["metrics.acc"][..],
            &[("metrics.`acc` in [.., 0.9]", Every(1))][..],
            "walk metrics.`acc` in [.., 0.9], backwards, equal ones sorted; about 102 read units in 2 requests",
        ),
        (
            "metrics.acc != 0.9",
            &["metrics.acc"][..],
            &[("metrics.`acc` of any value", Every(1))][..],
            "walk metrics.`acc` of any number, then metrics.`acc` NaN, backwards, equal ones sorted; about 128 read units in 3 requests",
        ),
        (
            "params.a = 'x'",
            &["metrics.acc DESC"][..],
            &[("params.`a` = 'x'", Every(9))][..],
            "walk metrics.`acc` of any value, then runs without; narrow by params.`a` = 'x'; about 150 read units in 3 requests",
        ),
        (
            "status = 'FINISHED'",
            &["metrics.acc DESC"][..],
            &[("status = 'FINISHED'", Every(1))][..],
            "walk metrics.`acc` of any value, then runs without; if few pass, narrow by status = 'FINISHED'; about 128 read units in 3 requests",
        ),
        (
            "params.a = 'x'",
            &["start_time"][..],
            &[("params.`a` = 'x'", Every(9))][..],
            "walk params.`a` = 'x', backwards, equal ones sorted; about 102 read units in 2 requests",
        ),
        (
            "params.a LIKE 'x%'",
            &["params.a"][..],
            &[("params.`a` begins with 'x'", Every(1))][..],
            "walk params.`a` begins with 'x', equal ones sorted; about 102 read units in 2 requests",
        ),
        (
            "status != 'FINISHED'",
            &["status"][..],
            &[][..],
            "walk status = 'FAILED', then status = 'KILLED', then status = 'RUNNING', then status = 'SCHEDULED'; about 205 read units in 3 requests",
        ),
        (
            "artifact_uri = 'd'",
            &["metrics.acc DESC"][..],
            &[("runs", Every(1))][..],
            "walk metrics.`acc` of any value, then runs without; about 205 read units in 3 requests",
        ),
    ]);
}

/// If no list is in the order of the search, all candidate runs are read and sorted.
#[test]
fn in_an_order_without_a_list() {
    check(&[
        (
            "status = 'FINISHED'",
            &["user_id"][..],
            &[("status = 'FINISHED'", Every(5)), ("runs", Every(4))][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
        (
            "status = 'RUNNING'",
            &["user_id"][..],
            &[("status = 'RUNNING'", Every(500)), ("runs", Every(4))][..],
            "gather status = 'RUNNING'; about 131 read units in 3 requests, if there are 10000 runs",
        ),
        (
            "params.a = 'x' AND metrics.acc > 0.9",
            &["user_id DESC"][..],
            &[("params.`a` = 'x'", Every(40)), ("metrics.`acc` in [0.9, ..]", Every(1)), ("runs", Every(4))][..],
            "gather params.`a` = 'x' and metrics.`acc` in [0.9, ..]; about 626 read units in 8 requests, if there are 10000 runs",
        ),
        (
            "artifact_uri = 'd'",
            &["user_id"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
        (
            "end_time > 5",
            &["user_id"][..],
            &[][..],
            "the whole experiment; about 3000 read units in 12 requests, if there are 10000 runs",
        ),
    ]);
}
