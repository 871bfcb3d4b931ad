//! Tests of the order of rows.

use std::collections::BTreeMap;

use super::{TestExperiment, TestRun, order, owned};
use crate::{RunOrder, parse_experiment_order_by};

fn sorted(mut runs: Vec<TestRun>, order: &RunOrder) -> String {
    runs.sort_by_key(|run| order.key(run));
    runs.into_iter().map(|run| run.id).collect::<Vec<_>>().join(" ")
}

fn run(id: &str, start_time: i64) -> TestRun {
    TestRun { id: id.to_owned(), start_time: Some(start_time), ..TestRun::default() }
}

#[test]
fn the_latest_run_comes_first_and_the_id_breaks_ties() {
    let runs = vec![run("b", 1), run("c", 2), run("a", 1)];
    assert_eq!(sorted(runs.clone(), &RunOrder::default()), "c a b");
    assert_eq!(sorted(runs.clone(), &order(&["start_time"])), "a b c");
    assert_eq!(sorted(runs.clone(), &order(&["run_id DESC"])), "c b a");
    assert_eq!(sorted(runs, &order(&["metrics.none"])), "c a b");
}

#[test]
fn metrics_put_nan_after_numbers_and_missing_last_in_both_directions() {
    let with = |id: &str, value: Option<f64>| TestRun {
        metrics: value.map(|value| ("m", value)).into_iter().collect(),
        ..run(id, 1)
    };
    let runs = vec![
        with("none", None),
        with("nan", Some(f64::NAN)),
        with("-1", Some(-1.0)),
        with("zero", Some(-0.0)),
        with("alsozero", Some(0.0)),
        with("big", Some(f64::MAX)),
    ];
    assert_eq!(sorted(runs.clone(), &order(&["metrics.m"])), "-1 alsozero zero big nan none");
    assert_eq!(sorted(runs, &order(&["metrics.m desc"])), "big alsozero zero -1 nan none");
}

#[test]
fn texts_sort_by_bytes_and_missing_ones_last() {
    let with = |id: &str, value: Option<&'static str>| TestRun {
        tags: value.map(|value| ("t", value)).into_iter().collect(),
        name: value,
        ..run(id, 1)
    };
    let runs = vec![
        with("none", None),
        with("é", Some("é")),
        with("a", Some("a")),
        with("Z", Some("Z")),
        with("10", Some("10")),
        with("9", Some("9")),
        with("empty", Some("")),
    ];
    for by in ["tags.t", "run_name"] {
        assert_eq!(sorted(runs.clone(), &order(&[by])), "empty 10 9 Z a é none");
        assert_eq!(sorted(runs.clone(), &order(&[&format!("{by} DESC")])), "é a Z 9 10 empty none");
    }
}

#[test]
fn later_terms_decide_among_equals() {
    let with = |id: &str, status, end_time| TestRun { status: Some(status), end_time, ..run(id, 1) };
    let runs = vec![with("1", "A", None), with("2", "B", Some(1)), with("3", "A", Some(1)), with("4", "A", Some(2))];
    assert_eq!(sorted(runs, &order(&["status DESC", "end_time DESC"])), "2 4 3 1");
}

#[test]
fn orderings_in_words() {
    for (clauses, expected) in [
        (&[][..], "start_time DESC, run_id ASC"),
        (&["created"], "start_time ASC, run_id ASC"),
        (&["metric.acc ASC"], "metrics.`acc` ASC, start_time DESC, run_id ASC"),
        (&["metrics.`a b`\tDesc", "params.\"x\""], "metrics.`a b` DESC, params.`x` ASC, start_time DESC, run_id ASC"),
        (&["tags.`m.n` desc"], "tags.`m.n` DESC, start_time DESC, run_id ASC"),
        (&["attributes.end_time", "run.status"], "end_time ASC, status ASC, start_time DESC, run_id ASC"),
    ] {
        assert_eq!(order(clauses).to_string(), expected);
    }
    for (clauses, expected) in [
        (&[][..], "creation_time DESC, experiment_id ASC"),
        (&["name"], "name ASC, experiment_id DESC"),
        (&["attribute.last_update_time DESC"], "last_update_time DESC, experiment_id DESC"),
        (&["experiment_id", "name", "name DESC"], "experiment_id ASC, name ASC, name DESC"),
    ] {
        assert_eq!(parse_experiment_order_by(&owned(clauses)).unwrap().to_string(), expected);
    }
}

#[test]
fn experiment_ids_sort_as_numbers() {
    let experiment = |id, name, created| TestExperiment { id, name, created, tags: BTreeMap::new() };
    let mut experiments = [experiment(9, "b", 1), experiment(10, "a", 1), experiment(2, "b", 3)];
    for (clauses, expected) in [
        (&[][..], [2, 9, 10]),
        (&["experiment_id DESC"], [10, 9, 2]),
        (&["name DESC"], [9, 2, 10]),
        (&["creation_time"], [10, 9, 2]),
    ] {
        let order = parse_experiment_order_by(&owned(clauses)).unwrap();
        experiments.sort_by_key(|experiment| order.key(experiment));
        assert_eq!(experiments.each_ref().map(|experiment| experiment.id), expected, "{clauses:?}");
    }
}
