//! Batches that fail, in whole or in part, and are delivered again.

use std::time::Instant;

use embedded_engine::faults::InjectedFault;
use entities::RunCopy;
use key_schema::index::RunsChanged;
use key_schema::{IndexEntry, OwnStage};
use table::{Item, text};

use crate::{Logged, Site, TIME, changed, record};

#[tokio::test]
async fn a_batch_with_one_poison_record_loses_no_other() {
    Box::pin(no_other_is_lost(150)).await;
}

#[tokio::test]
#[ignore = "indexes a thousand runs; part of `make test-slow`"]
async fn a_batch_of_a_thousand_with_one_poison_record_loses_no_other() {
    Box::pin(no_other_is_lost(1_000)).await;
}

/// Indexes this many runs, with an unreadable record in the middle of their records, and checks
/// that all other runs are indexed.
async fn no_other_is_lost(runs: u64) {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..runs {
        let at = site.run(number, &format!("run {number}")).await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
    }
    let middle = records.len() / 2;
    let others = records.len() - 1;
    records[middle]["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
    assert_eq!(site.handle(records).await, [middle.to_string()]);
    assert_eq!(site.keys("CA#run ").await.len(), others);
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 1, "the run of the unreadable record stays marked, so that searches read it");
}

/// If a run cannot be indexed, the record of that run fails, but the runs that share its requests
/// are indexed.
#[tokio::test]
async fn a_run_that_fails_is_named_and_the_others_are_indexed() {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..60 {
        let at = site.run(number, "x").await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
        if number == 20 {
            // The value is longer than DynamoDB allows for keys. It simulates a run id of another
            // server, in a copy whose list of stale entries is invalid.
            let stale = vec![table::Value::S("IX#1#P#x ".to_owned() + &"x".repeat(2_000))];
            let copy = Item::new(RunCopy::key(&at, TIME, OwnStage::Active))
                .with("name", text("x"))
                .with("user", text("ada"))
                .with("status", text("RUNNING"))
                .with("start_time", table::number(TIME))
                .with("artifact_uri", text("s3://bucket/1"))
                .with("indexed", text("0"))
                .with("stale", table::Value::L(stale));
            site.table
                .put(copy.with("entries", table::Value::L(Vec::new())), &table::Condition::item_missing())
                .await
                .unwrap();
        }
    }
    assert_eq!(site.handle(records).await, ["20"]);
    assert_eq!(site.keys("T#V").await.len(), 60, "its own entries were written too, but it stays marked");
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 1);
}

/// If the table is throttled, it receives no further requests, and the records are delivered again
/// for as long as it is throttled.
#[tokio::test]
async fn a_batch_that_is_throttled_comes_again_from_its_first_unfinished_record() {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..120 {
        let at = site.run(number, "x").await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
    }
    records.insert(0, record("MODIFY", &site.run(1_000, "first").await, "", 1_000));
    for _ in 0..30 {
        site.faults.reset_calls();
        site.faults.cut_off_at(1);
        assert_eq!(site.handle(records.clone()).await, ["1000"]);
        let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        assert_eq!(calls, 1);
    }
    site.faults.work_again();
    // Records that have been processed before the failure are not reported.
    site.faults.cut_off_at(150);
    let [again] = &site.handle(records.clone()).await[..] else { panic!("one record is named") };
    assert!(again.parse::<u64>().unwrap() >= 49, "{again}");
    site.faults.work_again();
    assert!(site.handle(records).await.is_empty());
    assert_eq!(site.keys("CA#run ").await.len(), 121);
}

/// A missing permission or a disabled key is not the fault of a record. All records are delivered
/// again until it is fixed, and only unreadable records are given up.
#[tokio::test]
async fn nothing_is_given_up_while_the_table_cannot_be_used() {
    for trouble in [InjectedFault::Denied, InjectedFault::KeyDisabled] {
        let site = Site::new().await;
        let mut unreadable = record("MODIFY", &site.run(1, "x").await, "", 1);
        unreadable["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
        let mut records = vec![unreadable];
        for number in 2..60 {
            let at = site.run(number, "x").await;
            records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
        }
        let logged = Logged::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(move || writer.clone());
        let guard = tracing::subscriber::set_default(log.finish());
        let begin = Instant::now();
        for call in 0..30 {
            site.faults.reset_calls();
            site.faults.trouble_at(trouble, 1, u64::MAX);
            let expected = if call < 10 { ["1", "2"].as_slice() } else { &["2"] };
            assert_eq!(site.handle(records.clone()).await, expected, "{trouble:?}, call {call}");
            if trouble == InjectedFault::KeyDisabled {
                let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
                assert_eq!(calls, 1, "the rest is not attempted");
            }
        }
        drop(guard);
        let lines = logged.lines();
        let of = |message: &str| lines.iter().filter(|line| line.contains(message)).count();
        // The log must contain at most one line per minute of the test.
        let minutes = usize::try_from(begin.elapsed().as_secs() / 60).unwrap();
        let refusals = of("the table cannot be used");
        assert!((1..=minutes + 1).contains(&refusals), "{lines:#?}");
        assert_eq!(of("a record is left behind"), 1, "{lines:#?}");
        assert_eq!(of("a record of the stream cannot be read"), lines.len() - 1 - refusals, "{lines:#?}");
        site.faults.work_again();
        assert!(site.handle(records).await.is_empty());
        assert_eq!(site.keys("CA#run ").await.len(), 58, "{trouble:?}");
    }
}

/// A record that fails permanently does not block the other records forever.
#[tokio::test]
async fn what_cannot_be_read_is_given_up_after_ten_retries() {
    let site = Site::new().await;
    let mut poisoned = record("MODIFY", &site.run(1, "x").await, "", 1);
    poisoned["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
    let records = vec![poisoned, record("MODIFY", &site.run(2, "x").await, "", 2)];
    for _ in 0..10 {
        assert_eq!(site.handle(records.clone()).await, ["1"]);
    }
    assert!(site.handle(records).await.is_empty());
}

/// No matter where an indexing is interrupted, the next attempt results in the state that an
/// uninterrupted indexing creates.
#[tokio::test]
async fn it_may_stop_anywhere_and_be_done_again() {
    let undisturbed = Site::new().await;
    let same = undisturbed.run(1, "first name").await;
    for (metric, step, value) in [("loss", 1, 0.5), ("loss", 2, 0.25), ("acc", 2, 0.9), ("loss", 3, 0.125)] {
        undisturbed.log(&same, metric, step, value).await;
    }
    assert!(undisturbed.handle(changed(&same)).await.is_empty());
    let expected = undisturbed.index().await;
    let mut cut_off = 0;
    for failing in 1.. {
        let site = Site::new().await;
        let at = site.run(1, "first name").await;
        site.log(&at, "loss", 1, 0.5).await;
        assert!(site.handle(changed(&at)).await.is_empty());
        // The first attempt to index a change is interrupted, and then another change is made.
        site.log(&at, "loss", 2, 0.25).await;
        site.log(&at, "acc", 2, 0.9).await;
        site.faults.reset_calls();
        site.faults.cut_off_at(failing);
        let failed = site.handle(changed(&at)).await;
        site.faults.work_again();
        let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        cut_off += usize::from(!failed.is_empty());
        site.log(&at, "loss", 3, 0.125).await;
        assert!(site.handle(changed(&at)).await.is_empty());
        assert_eq!(site.index().await, expected, "stopped at request {failing}");
        if calls < failing {
            assert!(failed.is_empty(), "it was not cut off");
            break;
        }
    }
    assert!(cut_off > 1, "{cut_off}");
}
