//! The index entries and the copy of a run.

use std::collections::BTreeSet;

use entities::MarkUpdate;
use key_schema::index::{RunsByEnd, RunsByStatus, RunsChanged};
use key_schema::{IndexEntry, OwnStage};
use run_index::MAX_ENTRIES_IN_MEMORY;
use serde_json::json;
use table::Update;

use crate::{Site, changed, record};

#[tokio::test]
async fn a_run_stands_in_the_lists_it_belongs_to() {
    let site = Site::new().await;
    let at = site.run(1, "Old newts").await;
    site.log(&at, "loss", 1, 0.5).await;
    site.log(&at, "loss", 2, 0.25).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    assert_eq!(site.keys("M#").await.len(), 1, "one per metric");
    assert_eq!(site.keys("P#lr 0.1#").await.len(), 1, "one per param");
    assert_eq!(site.keys("T#V").await.len(), 1, "the user's tag, not MLflow's");
    let trigrams = site.keys("T#3").await;
    assert!(trigrams.len() == 4 && trigrams.iter().any(|key| key.contains(" d$20n#")), "{trigrams:?}");
    let partitions: BTreeSet<_> = trigrams.iter().map(|key| key.split(' ').next()).collect();
    assert!(partitions.len() > 1, "{partitions:?}");
    let lists = site.dump().await.into_keys().filter(|key| key.starts_with("EXP#1 IX#run#")).count();
    assert_eq!(lists, 4, "each in the directory: a metric, a param, a tag, trigrams of the name");
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 0);
    let copy = site.copy(&at, OwnStage::Active).await.unwrap();
    assert!(copy.0.entry::<RunsByStatus>().is_some_and(|listed| listed.status == "RUNNING".into()));
    assert!(copy.0.entry::<RunsByEnd>().is_none(), "it has not ended");
    assert!(copy.into_values().is_some());
}

#[tokio::test]
async fn a_value_that_changes_often_is_moved_once() {
    let site = Site::new().await;
    let at = site.run(1, "x").await;
    for step in 0..50 {
        site.log(&at, "loss", step, 50.0 - f64::from(i32::try_from(step).unwrap())).await;
    }
    let records = (0..50).map(|number| record("MODIFY", &at, "", number)).collect();
    assert!(site.handle(records).await.is_empty());
    let first = site.keys("M#loss").await;
    site.log(&at, "loss", 60, -1.0).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    let second = site.keys("M#loss").await;
    assert!(first.len() == 1 && second.len() == 1 && first != second);
}

/// When a run is deleted, its entries leave the lists, and its copy moves to the copies of deleted
/// runs. When the run is restored, copy and entries are as before.
#[tokio::test]
async fn a_run_has_one_copy_whatever_its_stage() {
    let site = Site::new().await;
    let at = site.run(1, "deleted").await;
    site.log(&at, "loss", 1, 0.5).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    let before = site.index().await;
    for _ in 0..2 {
        site.set_stage(&at, "deleted").await;
        // Repeating the batch, for example after a manual intervention, removes nothing.
        for _ in 0..2 {
            assert!(site.handle(changed(&at)).await.is_empty());
            assert_eq!(site.keys("").await.len(), 1, "the copy");
            let copy = site.copy(&at, OwnStage::Deleted).await.unwrap();
            assert!(!copy.0.is_in(RunsByStatus::INDEX) && copy.into_values().is_some());
        }
        assert_eq!(site.rebuilding().sweep(at.experiment, MAX_ENTRIES_IN_MEMORY).await.unwrap(), 0);
        site.set_stage(&at, "active").await;
        assert!(site.handle(changed(&at)).await.is_empty());
        assert!(site.copy(&at, OwnStage::Deleted).await.is_none());
        let mut after = site.index().await;
        for (_, item) in &mut after {
            item.as_object_mut().unwrap().remove("stage");
        }
        assert_eq!(after, before);
    }
    site.set_stage(&at, "deleted").await;
    assert!(site.handle(changed(&at)).await.is_empty());
    site.table.write_many(Vec::new(), &[at.key()]).await.unwrap();
    assert!(site.handle(vec![record("REMOVE", &at, "", 1)]).await.is_empty());
    assert_eq!(site.keys("").await, Vec::<String>::new());
}

/// The row of a list in the directory is written before the list's entries, and only if the process
/// has not cached it. If the process crashes before writing the entries, there is at most one
/// unneeded row.
#[tokio::test]
async fn lists_are_in_the_directory_before_their_entries() {
    for failing in 1..12 {
        let site = Site::new().await;
        let at = site.run(1, "x").await;
        site.log(&at, "loss", 1, 0.5).await;
        site.faults.cut_off_at(failing);
        site.handle(changed(&at)).await;
        site.faults.work_again();
        let entries = site.keys("M#").await.len() + site.keys("P#").await.len() + site.keys("T#").await.len();
        let rows: Vec<_> = site.dump().await.into_keys().filter(|key| key.contains(" IX#run#")).collect();
        assert!(entries == 0 || rows.len() == 3, "stopped at request {failing}: {rows:?}");
        let image = json!({ "name": { "S": "gone" } });
        let keys = json!({ "PK": { "S": "EXP#1" }, "SK": { "S": "E#META" } });
        let removed = json!({ "Keys": keys, "OldImage": image, "SequenceNumber": "1" });
        let removed = json!({ "eventName": "REMOVE", "dynamodb": removed });
        assert!(site.handle(vec![removed]).await.is_empty());
        assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
    }
}

/// A name of the maximum length that this server generates, which is 20 characters, must result in
/// only a few index entries.
#[tokio::test]
async fn a_default_name_makes_few_entries() {
    let site = Site::new().await;
    let at = site.run(1, "gentle-squirrels-987").await;
    let user = Update::new(at.key()).remove(("tags", "team")).marked(&at.run);
    site.table.update(&user).await.unwrap();
    assert!(site.handle(changed(&at)).await.is_empty());
    let entries = site.keys("T#").await.len() + site.keys("C").await.len();
    assert!(entries <= 14, "{entries}, including the copy");
}
