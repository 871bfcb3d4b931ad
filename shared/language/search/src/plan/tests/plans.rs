//! Tests of plans in their displayed form. Each case has a filter, an order and the known sizes of
//! lists, and the resulting plan.

use super::Known::{self, Every, Whole};
use super::{heads, options, parsed, shown};
use crate::{CommonFields, IndexedFields, RunOptions, RunPlan, choose};

pub(super) fn plan(filter: &str, order_by: &[&str], known: &[(&str, Known)]) -> RunPlan {
    let options = options(filter, order_by);
    choose(&options, &heads(&options, known), 100)
}

/// A case: a filter, an order, the known heads of lists, and the displayed form of the resulting
/// plan.
pub(super) type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, Known)], &'a str);

#[track_caller]
pub(super) fn check(cases: &[Case]) {
    for (filter, order_by, known, expected) in cases {
        let plan = plan(filter, order_by, known).to_string();
        let is_new = |line: &&str| !["  keep", "  view", "  order"].iter().any(|kind| line.starts_with(kind));
        let plan: Vec<_> = plan.lines().filter(is_new).map(str::trim_start).collect();
        assert_eq!(plan.join("; "), *expected, "{filter} {order_by:?}");
    }
}

/// A small experiment is read as a whole if that is cheaper.
#[test]
fn of_small_experiments() {
    check(&[
        (
            "",
            &["metrics.acc"][..],
            &[("runs", Whole(40))][..],
            "the whole experiment; about 12 read units in 1 request",
        ),
        (
            "",
            &["metrics.acc"][..],
            &[("runs", Whole(128))][..],
            "the whole experiment; about 38 read units in 1 request",
        ),
        (
            "start_time > 5",
            &["metrics.acc"][..],
            &[("runs", Whole(40))][..],
            "gather runs; started in [6, ..]; about 41 read units in 2 requests",
        ),
        (
            "status = 'FINISHED'",
            &["user_id"][..],
            &[("status = 'FINISHED'", Whole(30)), ("runs", Whole(40))][..],
            "the whole experiment; about 12 read units in 1 request",
        ),
        (
            "status = 'FINISHED'",
            &["user_id"][..],
            &[("status = 'FINISHED'", Whole(3)), ("runs", Whole(40))][..],
            "gather status = 'FINISHED'; about 3 read units in 2 requests",
        ),
    ]);
}

/// A list with few runs is gathered, regardless of the order.
#[test]
fn of_short_lists() {
    check(&[
        (
            "params.a = 'x'",
            &[][..],
            &[("params.`a` = 'x'", Whole(40))][..],
            "gather params.`a` = 'x'; about 41 read units in 2 requests",
        ),
        (
            "params.a = 'x'",
            &[][..],
            &[("params.`a` = 'x'", Whole(0))][..],
            "gather params.`a` = 'x'; about 0 read units in 1 request",
        ),
        (
            "params.a = 'x'",
            &["metrics.acc"][..],
            &[("params.`a` = 'x'", Whole(40))][..],
            "gather params.`a` = 'x'; about 41 read units in 2 requests",
        ),
        (
            "params.a = 'x'",
            &["user_id"][..],
            &[("params.`a` = 'x'", Whole(40)), ("runs", Every(1))][..],
            "gather params.`a` = 'x'; about 41 read units in 2 requests",
        ),
        (
            "params.a = 'x' AND metrics.acc > 0.9",
            &[][..],
            &[("params.`a` = 'x'", Every(9)), ("metrics.`acc` in [0.9, ..]", Whole(20))][..],
            "gather metrics.`acc` in [0.9, ..]; about 20 read units in 2 requests",
        ),
        (
            "params.a = 'x' AND tags.env = 'y'",
            &[][..],
            &[("params.`a` = 'x'", Whole(60)), ("tags.env = 'y'", Whole(50))][..],
            "gather params.`a` = 'x' and tags.env = 'y'; about 28 read units in 3 requests",
        ),
        (
            "metrics.acc > 0.9",
            &["metrics.acc DESC"][..],
            &[("metrics.`acc` in [0.9, ..]", Whole(20))][..],
            "gather metrics.`acc` in [0.9, ..]; about 20 read units in 2 requests",
        ),
        (
            "run_name ILIKE '%night%'",
            &[][..],
            &[("'ght' in attributes.run_name", Whole(12))][..],
            "gather 'ght' in attributes.run_name; about 12 read units in 2 requests",
        ),
    ]);
}

/// Lists that are newest first are joined in the default order.
#[test]
fn by_equality() {
    check(&[
        (
            "params.a = 'x'",
            &[][..],
            &[("params.`a` = 'x'", Every(9))][..],
            "newest first of params.`a` = 'x'; about 102 read units in 2 requests",
        ),
        (
            "status = 'RUNNING' AND start_time >= 1e3",
            &[][..],
            &[("status = 'RUNNING'", Every(9))][..],
            "newest first of status = 'RUNNING'; started in [1000, ..]; about 102 read units in 2 requests",
        ),
        (
            "params.a = 'x' AND status = 'FINISHED'",
            &[][..],
            &[("params.`a` = 'x'", Every(9)), ("status = 'FINISHED'", Every(3))][..],
            "newest first of params.`a` = 'x' and status = 'FINISHED'; about 112 read units in 3 requests",
        ),
        (
            "params.a = 'x' AND status = 'FINISHED'",
            &[][..],
            &[("params.`a` = 'x'", Every(900)), ("status = 'FINISHED'", Every(3))][..],
            "newest first of params.`a` = 'x'; about 128 read units in 3 requests",
        ),
        (
            "run_name = 'night' AND tags.env = 'y'",
            &[][..],
            &[("name = 'night'", Every(9)), ("tags.env = 'y'", Every(9))][..],
            "newest first of name = 'night' and tags.env = 'y'; about 110 read units in 3 requests",
        ),
        (
            "run_name LIKE 'night run%'",
            &[][..],
            &[][..],
            "newest first of 'ght' in attributes.run_name and 't r' in attributes.run_name; narrow by name begins with 'night run'; about 130 read units in 4 requests",
        ),
        (
            "tags.`mlflow.parentRunId` = 'p'",
            &[][..],
            &[("tags.mlflow.parentRunId = 'p'", Every(9))][..],
            "newest first of tags.mlflow.parentRunId = 'p'; about 102 read units in 2 requests",
        ),
        (
            "params.a = 'x' AND params.b IS NULL",
            &[][..],
            &[("params.`a` = 'x'", Every(9))][..],
            "newest first of params.`a` = 'x'; about 205 read units in 3 requests",
        ),
    ]);
}

/// A list that is in a different order than the search narrows the search.
#[test]
fn by_ranges() {
    check(&[
        (
            "metrics.acc > 0.9",
            &[][..],
            &[("metrics.`acc` in [0.9, ..]", Every(1))][..],
            "newest first; if few pass, narrow by metrics.`acc` in [0.9, ..]; about 75 read units in 1 request",
        ),
        (
            "metrics.acc > 0.9 AND metrics.acc <= 0.95",
            &[][..],
            &[("metrics.`acc` in [0.9, 0.95]", Every(1))][..],
            "newest first; narrow by metrics.`acc` in [0.9, 0.95]; about 162 read units in 3 requests",
        ),
        (
            "metrics.acc != 0",
            &[][..],
            &[("metrics.`acc` of any value", Every(1))][..],
            "newest first; if few pass, narrow by metrics.`acc` of any value; about 38 read units in 1 request",
        ),
        (
            "params.a = 'x' AND metrics.acc > 0.9",
            &[][..],
            &[("params.`a` = 'x'", Every(9)), ("metrics.`acc` in [0.9, ..]", Every(1))][..],
            "newest first of params.`a` = 'x'; if few pass, narrow by metrics.`acc` in [0.9, ..]; about 205 read units in 3 requests",
        ),
        (
            "params.a LIKE 'x%'",
            &[][..],
            &[("params.`a` begins with 'x'", Every(1))][..],
            "newest first; narrow by params.`a` begins with 'x'; about 162 read units in 3 requests",
        ),
        (
            "params.a != 'x'",
            &[][..],
            &[("params.`a` of any value", Every(1))][..],
            "newest first; if few pass, narrow by params.`a` of any value; about 38 read units in 1 request",
        ),
        (
            "tags.env IS NOT NULL",
            &[][..],
            &[("tags.env of any value", Every(1))][..],
            "newest first; if few pass, narrow by tags.env of any value; about 38 read units in 1 request",
        ),
        (
            "run_name LIKE '%ab'",
            &[][..],
            &[][..],
            "newest first; if few pass, narrow by name of any value; about 38 read units in 1 request",
        ),
        (
            "run_name LIKE '%a%'",
            &[][..],
            &[][..],
            "newest first; if few pass, narrow by name of any value; about 38 read units in 1 request",
        ),
    ]);
}

/// Conditions that no list can answer are checked on the runs, newest first.
#[test]
fn without_an_index() {
    check(&[
        ("artifact_uri = 'd'", &[][..], &[][..], "newest first; about 60 read units in 1 request"),
        (
            "end_time > 5 AND artifact_uri LIKE 's3%'",
            &[][..],
            &[][..],
            "newest first; about 120 read units in 1 request",
        ),
        ("params.a IS NULL", &[][..], &[][..], "newest first; about 60 read units in 1 request"),
        ("tags.`mlflow.user` = 'me'", &[][..], &[][..], "newest first; about 60 read units in 1 request"),
        ("user_id = 'me'", &[][..], &[][..], "newest first; about 60 read units in 1 request"),
        (
            "start_time > 5 AND end_time < 9",
            &[][..],
            &[][..],
            "newest first; started in [6, ..]; about 60 read units in 1 request",
        ),
    ]);
}

/// A tag that is only indexed by its text is found by trigrams. No list is sorted by such a tag.
#[test]
fn by_text_alone() {
    let text = vec!["tags.note".to_owned()];
    let fields = CommonFields::of([IndexedFields { values: Vec::new(), text }]);
    let planned = |filter: &str, order_by: &[&str]| {
        let (filter, order) = parsed(filter, order_by);
        let options = RunOptions::of(&filter.asks(), &order.sorting(), &fields);
        choose(&options, &heads(&options, &[]), 100).to_string()
    };
    assert_eq!(
        planned("tags.note ILIKE '%N BOX%'", &[]),
        "newest first of 'n b' in tags.note\n  about 102 read units in 2 requests"
    );
    assert_eq!(
        planned("", &["tags.note"]),
        "the whole experiment\n  about 3000 read units in 12 requests, if there are 10000 runs"
    );
}

/// If the filter names runs by id, no other runs are read.
#[test]
fn by_id() {
    check(&[
        (
            "run_id = 'r' AND metrics.acc > 0.9",
            &["metrics.acc"][..],
            &[][..],
            "runs r; about 1 read units in 1 request",
        ),
        (
            "run_id IN ('r', 's', 'r') AND run_id IN ('s', 't', 'r')",
            &[][..],
            &[][..],
            "runs r, s; about 2 read units in 1 request",
        ),
        ("run_id = 'r' AND run_id = 's'", &[][..], &[][..], "nothing can pass; about 0 read units in 0 requests"),
        ("metrics.acc > 2 AND metrics.acc < 1", &[][..], &[][..], "nothing can pass; about 0 read units in 0 requests"),
        (
            "start_time = 5.5",
            &["metrics.acc"][..],
            &[][..],
            "nothing can pass; started in [6, 5]; about 0 read units in 0 requests",
        ),
        ("run_id LIKE 'r%'", &[][..], &[][..], "newest first; about 60 read units in 1 request"),
    ]);
}

#[test]
fn a_plan_in_words() {
    let known = [("params.`a` = 'x'", Every(9))];
    let plan = plan("params.a = 'x' AND start_time > 5 AND end_time < 9", &["metrics.acc DESC"], &known);
    assert_eq!(
        plan.to_string(),
        "walk metrics.`acc` of any value, then runs without\n  started in [6, ..]\n  narrow by params.`a` = 'x'\n\
         \x20 about 275 read units in 4 requests"
    );
}

#[test]
fn a_path_is_narrowed_when_few_pass() {
    let rare = plan("params.a = 'x'", &["metrics.acc DESC"], &[("params.`a` = 'x'", Every(9))]);
    // The limit first corresponds to the cost of a page of candidates, and then to the cost of
    // continuing.
    assert_eq!(rare.narrow_limit(0, 0, 100), 4_100);
    assert_eq!(rare.narrow_limit(100, 50, 50), 0);
    assert_eq!(rare.narrow_limit(100, 10, 90), 36_900);
    assert_eq!(rare.narrow_limit(100, 0, 100), 100_000);
    let frequent = plan("metrics.acc > 0.9", &[], &[("metrics.`acc` in [0.9, ..]", Every(1))]);
    assert_eq!(frequent.narrow_limit(0, 0, 100), 0);
    assert_eq!(frequent.narrow_limit(100, 20, 80), 16_400);
    let nothing_else = plan("params.a = 'x'", &[], &[("params.`a` = 'x'", Every(9))]);
    assert_eq!(nothing_else.narrow_limit(100, 0, 100), 0);
}

#[test]
fn predicates_have_lists() {
    for (filter, expected) in [
        ("params.a = 'x'", "params.`a` = 'x'"),
        ("params.a LIKE 'x'", "params.`a` = 'x'"),
        ("params.a LIKE 'x_z%'", "params.`a` begins with 'x'"),
        ("params.a LIKE '%x'", "params.`a` of any value"),
        ("params.a ILIKE 'x'", "params.`a` of any value"),
        ("params.a != 'x'", "params.`a` of any value"),
        ("params.a IS NOT NULL", "params.`a` of any value"),
        ("params.a IS NULL", ""),
        ("tags.env = 'x'", "tags.env = 'x'"),
        ("tags.env LIKE 'x%'", "tags.env begins with 'x'"),
        ("tags.env != 'x'", "tags.env of any value"),
        ("tags.env IS NULL", ""),
        ("tags.`mlflow.user` = 'x'", ""),
        ("tags.`mlflow.parentRunId` = 'x'", "tags.mlflow.parentRunId = 'x'"),
        ("status = 'FAILED'", "status = 'FAILED'"),
        ("status LIKE 'F%'", "status begins with 'F'"),
        ("status != 'FAILED'", ""),
        ("run_name = 'x y'", "name = 'x y'"),
        ("run_name != 'x y'", ""),
        ("run_name LIKE 'x%'", "name begins with 'x'"),
        ("run_name LIKE 'xyz%'", "name begins with 'xyz'"),
        (
            "run_name ILIKE '%abcdefgh%'",
            "'bcd' in attributes.run_name, 'def' in attributes.run_name, 'fgh' in attributes.run_name",
        ),
        ("run_name ILIKE 'Night%'", "'ght' in attributes.run_name"),
        (
            "run_name LIKE '%y-train'",
            "'y-t' in attributes.run_name, 'rai' in attributes.run_name, 'ain' in attributes.run_name",
        ),
        (
            "run_name ILIKE '% nightly runs %'",
            "'igh' in attributes.run_name, 'tly' in attributes.run_name, 'run' in attributes.run_name",
        ),
        ("run_name ILIKE '%a%bc%'", "name of any value"),
        ("run_name LIKE '%'", ""),
        ("metrics.m > 1 AND metrics.m <= 2", "metrics.`m` in [1.0, 2.0]"),
        ("metrics.m = 0", "metrics.`m` in [-0.0, 0.0]"),
        ("metrics.m != 0", "metrics.`m` of any value"),
        ("start_time > 5", "runs"),
        ("start_time > 5 AND status = 'FAILED'", "status = 'FAILED'"),
        ("end_time > 5", ""),
        ("artifact_uri = 'x'", ""),
        ("datasets.name = 'x'", "datasets.name = 'x'"),
        ("datasets.context != 'x'", "datasets.context of any value"),
        ("run_id != 'x'", ""),
    ] {
        assert_eq!(shown(&options(filter, &[]).lists).join(", "), expected, "{filter}");
    }
}
