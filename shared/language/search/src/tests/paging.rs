//! Tests of paging: each row is returned once, regardless of changes between pages.

use std::collections::{BTreeMap, BTreeSet};

use mlflow_api::tracking::ViewType;
use proptest::prelude::*;

use super::{TestRun, order};
use crate::{Fingerprint, RunOrder, SortKey, decode_page_token, encode_page_token};

/// Generates runs with few distinct values, so that many runs have equal values in the columns that
/// they are sorted by.
fn runs() -> impl Strategy<Value = Vec<TestRun>> {
    let metric = prop_oneof![Just(None), Just(Some(f64::NAN)), Just(Some(0.0)), Just(Some(-0.0)), Just(Some(1.5))];
    let tag = prop_oneof![Just(None), Just(Some("")), Just(Some("a")), Just(Some("é"))];
    let fields = prop::collection::vec((metric, tag, 0_i64..3), 0..40);
    fields.prop_map(|fields| {
        let run = |(number, (metric, tag, start_time)): (usize, (Option<f64>, Option<&'static str>, i64))| TestRun {
            id: format!("{:03}", number * 37 % 101),
            start_time: Some(start_time),
            metrics: metric.map(|value| ("m", value)).into_iter().collect(),
            tags: tag.map(|value| ("t", value)).into_iter().collect(),
            ..TestRun::default()
        };
        fields.into_iter().enumerate().map(run).collect()
    })
}

fn orders() -> impl Strategy<Value = RunOrder> {
    let clauses = prop::sample::subsequence(vec!["metrics.m DESC", "tags.t", "start_time"], 0..=3).prop_shuffle();
    clauses.prop_map(|clauses| order(&clauses))
}

/// Returns the page of at most `size` runs after `token`, and the token of the next page.
fn page(runs: &[TestRun], order: &RunOrder, token: &str, size: usize) -> (Vec<String>, Option<String>) {
    let search = Fingerprint::of_run_search(&[], "", &[], ViewType::ActiveOnly);
    let after: Option<SortKey> = decode_page_token(search, token).unwrap();
    let mut rows: BTreeMap<SortKey, &str> = runs.iter().map(|run| (order.key(run), run.id.as_str())).collect();
    if let Some(after) = after {
        rows.retain(|key, _| *key > after);
    }
    let more = rows.len() > size;
    let shown: Vec<_> = rows.into_iter().take(size).collect();
    let last = shown.last().filter(|_| more).map(|(key, _)| encode_page_token(search, key).unwrap());
    (shown.into_iter().map(|(_, id)| id.to_owned()).collect(), last)
}

proptest! {
    #[test]
    fn keys_differ_and_sort_as_the_runs_do(runs in runs(), order in orders()) {
        let keys: BTreeSet<_> = runs.iter().map(|run| order.key(run)).collect();
        prop_assert_eq!(keys.len(), runs.len());
    }

    #[test]
    fn a_key_survives_its_token(runs in runs(), order in orders()) {
        let search = Fingerprint::of_run_search(&[], "f", &[], ViewType::All);
        for run in &runs {
            let key = order.key(run);
            let token = encode_page_token(search, &key).unwrap();
            prop_assert_eq!(decode_page_token(search, &token).unwrap(), Some(key));
        }
    }

    #[test]
    fn each_run_is_shown_once_while_others_come_and_go(
        runs in runs(),
        order in orders(),
        size in 1_usize..5,
        changing in prop::collection::vec(any::<bool>(), 40),
        present in prop::collection::vec(prop::collection::vec(any::<bool>(), 40), 41),
    ) {
        let is_there = |round: usize, place: usize| !changing[place] || present[round][place];
        let mut shown = Vec::new();
        let mut token = Some(String::new());
        for round in 0.. {
            let Some(from) = token else { break };
            let now = runs.iter().enumerate().filter(|&(place, _)| is_there(round, place));
            let now: Vec<_> = now.map(|(_, run)| run.clone()).collect();
            let (ids, next) = page(&now, &order, &from, size);
            shown.extend(ids);
            token = next;
        }
        let distinct: BTreeSet<_> = shown.iter().collect();
        prop_assert_eq!(distinct.len(), shown.len(), "a run was returned twice");
        for (place, run) in runs.iter().enumerate() {
            prop_assert!(changing[place] || distinct.contains(&run.id), "a run that existed throughout was not returned");
        }
    }

    #[test]
    fn no_token_makes_trouble(token in "\\PC*") {
        let search = Fingerprint::of_run_search(&[], "", &[], ViewType::ActiveOnly);
        let _ = decode_page_token::<SortKey>(search, &token);
    }
}
