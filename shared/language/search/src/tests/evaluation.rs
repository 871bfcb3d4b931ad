//! Tests that filters select the right runs and experiments.

use std::collections::BTreeMap;

use super::{TestExperiment, TestRun, filter};
use crate::{DatasetInputFields, parse_experiment_filter};

fn run() -> TestRun {
    TestRun {
        id: "r1".to_owned(),
        name: Some("attribute"),
        status: Some("FINISHED"),
        start_time: Some(9_007_199_254_740_993),
        end_time: None,
        user_id: None,
        metrics: BTreeMap::from([("acc", 0.5), ("nan", f64::NAN), ("zero", -0.0)]),
        params: BTreeMap::from([("lr", "10"), ("empty", "")]),
        tags: BTreeMap::from([("mlflow.runName", "Tag"), ("é", "É")]),
        datasets: vec![
            DatasetInputFields { name: "iris", digest: "d1", context: Some("train") },
            DatasetInputFields { name: "wine", digest: "d2", context: None },
        ],
    }
}

#[track_caller]
fn check(cases: &[(&str, bool)]) {
    let run = run();
    for (text, expected) in cases {
        assert_eq!(filter(text).matches(&run), *expected, "{text}");
    }
}

#[test]
fn metrics_compare_as_numbers() {
    check(&[
        ("metrics.acc = .5", true),
        ("metrics.acc != 0.5", false),
        ("metrics.acc >= 5e-1 and metrics.acc <= 0.50", true),
        ("metrics.acc > 0.5", false),
        ("metrics.acc < 1", true),
        ("metrics.zero = 0", true),
        ("metrics.acc < 1e999", true),
        ("metrics.missing != 1", false),
    ]);
}

#[test]
fn nan_differs_from_everything_and_compares_with_nothing() {
    check(&[
        ("metrics.nan != 0", true),
        ("metrics.nan = 0", false),
        ("metrics.nan < 0", false),
        ("metrics.nan >= 0", false),
    ]);
}

#[test]
fn texts_compare_by_bytes() {
    check(&[
        ("params.lr = '10'", true),
        ("params.lr = \"10\"", true),
        ("params.lr != '9'", true),
        ("params.lr LIKE '1%'", true),
        ("params.empty = ''", true),
        ("tags.`é` = 'é'", false),
        ("tags.`é` ilike 'é'", true),
        ("tags.é LIKE '_'", true),
        ("status like 'finished'", false),
        ("status ILIKE 'fin%'", true),
        ("run_id IN ('r0', 'r1')", true),
        ("run_id NOT IN ('r0', 'r1')", false),
    ]);
}

#[test]
fn what_is_missing_passes_no_comparison() {
    check(&[
        ("params.missing != 'a'", false),
        ("params.missing LIKE '%'", false),
        ("params.missing IS NULL", true),
        ("params.missing IS NOT NULL", false),
        ("params.empty IS NULL", false),
        ("tags.`mlflow.runName` is not null", true),
        ("end_time != 1", false),
        ("end_time < 1", false),
        ("user_id != 'a'", false),
    ]);
}

#[test]
fn times_compare_exactly() {
    check(&[
        ("start_time = 9007199254740993", true),
        ("start_time > 9007199254740992", true),
        ("start_time > 9007199254740992.0", true),
        ("created <= 9007199254740994.5", true),
        ("attributes.Created < 1.5e3", false),
    ]);
}

#[test]
fn the_name_is_looked_up_in_the_tag() {
    check(&[("run_name = 'Tag'", true), ("attributes.`Run Name` = 'Tag'", true), ("`run name` = 'attribute'", false)]);
}

#[test]
fn one_dataset_must_pass_each_condition() {
    check(&[
        ("datasets.name = 'iris' AND dataset.digest = 'd2'", true),
        ("dataset.name != 'iris'", true),
        ("dataset.name NOT IN ('iris', 'wine')", false),
        ("dataset.context = 'train'", true),
        ("dataset.context != 'train'", false),
    ]);
}

#[test]
fn experiments() {
    let experiment =
        TestExperiment { id: 12, name: "Default", created: 5, tags: BTreeMap::from([("team", "a"), ("x y", "b")]) };
    for (text, expected) in [
        ("", true),
        ("name = 'Default' AND attribute.name LIKE 'Def%'", true),
        ("name ILIKE 'def%'", true),
        ("name LIKE 'def%'", false),
        ("experiment_id = '12'", true),
        ("experiment_id = ' +1_2'", true),
        ("experiment_id != '012'", false),
        ("experiment_id = '-1'", false),
        ("experiment_id != '99999999999999999999'", true),
        ("experiment_id IN ('1', '12')", true),
        ("experiment_id NOT IN ('1', '12')", false),
        ("creation_time >= 5 AND last_update_time < 7", true),
        ("creation_time != 5", false),
        ("tags.team = 'a' AND tag.`x y` != 'a'", true),
        ("tags.other != 'a'", false),
        ("tags.other IS NULL AND tags.team is not null", true),
    ] {
        assert_eq!(parse_experiment_filter(text).unwrap().matches(&experiment), expected, "{text}");
    }
}
