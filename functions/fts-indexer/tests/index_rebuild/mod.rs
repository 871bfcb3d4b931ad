//! Tests rebuilding the index.

use std::collections::HashSet;

use key_schema::{Descending, rows};
use mlflow_api::{ExperimentId, RunId};
use run_index::{MAX_ENTRIES_IN_MEMORY, UnmarkedRuns};
use table::Item;

use crate::{Site, TIME, changed};

#[tokio::test]
async fn a_rebuild_puts_what_is_missing_and_sweeps_what_is_stray() {
    let site = Site::new().await;
    let at = site.run(1, "rebuilt").await;
    site.log(&at, "loss", 1, 0.5).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    let whole = site.index().await;
    // Simulates an entry that was deleted manually.
    let lost = rows::RankByParam::key(&at.experiment, &"lr".into(), &"0.1".into(), &Descending(TIME), &at.run);
    let stray = rows::RankByParam::key(&at.experiment, &"lr".into(), &"9".into(), &Descending(TIME), &at.run);
    site.table.write_many(vec![Item::new(stray)], &[lost]).await.unwrap();
    let mut left = site.rebuilding().mark_runs(&mut UnmarkedRuns::all(at.experiment), 1).await.unwrap();
    assert_eq!(left.len(), 1);
    site.rebuilding().drop_rebuilt(at.experiment, &mut left).await.unwrap();
    assert_eq!(left.len(), 1, "the run has not been indexed yet");
    assert!(site.handle(changed(&at)).await.is_empty());
    site.rebuilding().drop_rebuilt(at.experiment, &mut left).await.unwrap();
    assert!(left.is_empty());
    assert_eq!(site.rebuilding().sweep(at.experiment, MAX_ENTRIES_IN_MEMORY).await.unwrap(), 1);
    assert_eq!(site.index().await, whole);
}

#[tokio::test]
async fn runs_are_marked_some_at_a_time() {
    let site = Site::new().await;
    let mut all = HashSet::new();
    for number in 1..=5 {
        all.insert(site.run(number, "some").await.run);
    }
    let mut unmarked = UnmarkedRuns::all(ExperimentId::from_number(1).unwrap());
    assert_eq!(site.rebuilding().count_runs(unmarked.experiment()).await.unwrap(), 5);
    let mut marked = Vec::new();
    while !unmarked.is_empty() {
        let some = site.rebuilding().mark_runs(&mut unmarked, 2).await.unwrap();
        assert!(some.len() <= 2);
        marked.extend(some);
    }
    assert_eq!((marked.len(), marked.into_iter().collect::<HashSet<_>>()), (5, all));
    assert!(site.rebuilding().mark_runs(&mut unmarked, 2).await.unwrap().is_empty());
}

/// A rebuild removes stray entries wherever they are in a list: before the entries of the first
/// run, between the entries of two runs, after those of the last run, or under the key of an
/// existing run.
#[tokio::test]
async fn a_sweep_in_parts_finds_every_stray_entry_and_no_other() {
    let site = Site::new().await;
    let mut runs = Vec::new();
    for number in 1..=5 {
        let at = site.run(number, &format!("run {number}")).await;
        assert!(site.handle(changed(&at)).await.is_empty());
        runs.push(at);
    }
    let whole = site.index().await;
    let gone = |number: u64| RunId::new(1_700_000_000_000 + number, runs[0].experiment, 8);
    let places = [
        (TIME + 1, gone(9)),
        (TIME, gone(0)),
        (TIME, gone(3)),
        (TIME, gone(9)),
        (TIME - 1, gone(1)),
        (TIME, runs[0].run.clone()),
        (TIME, runs[2].run.clone()),
        (TIME, runs[4].run.clone()),
    ];
    let stray = places.map(|(started, run)| {
        let value = "no run has it".into();
        Item::new(rows::RankByParam::key(&runs[0].experiment, &"lr".into(), &value, &Descending(started), &run))
    });
    for held_at_once in [1, 2, 3, 7, 8, 9, MAX_ENTRIES_IN_MEMORY] {
        site.table.write_many(stray.to_vec(), &[]).await.unwrap();
        let swept = site.rebuilding().sweep(runs[0].experiment, held_at_once).await.unwrap();
        assert_eq!(swept, stray.len(), "{held_at_once} held at once");
        assert_eq!(site.index().await, whole, "{held_at_once} held at once");
    }
}
