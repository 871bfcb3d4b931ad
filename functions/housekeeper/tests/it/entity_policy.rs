//! Tests the retention policy for deleted entities.

use std::time::Duration;

use entities::workspaces::Workspaces;
use key_schema::rows;
use retention::{DeletionAge, LogReport, RetentionPolicy};
use serde_json::json;
use table::{Condition, Item, UsageMeter, text};

use crate::test_server::{TestServer, apply_policy};

#[tokio::test]
async fn without_a_policy_nothing_is_removed() {
    let lab = TestServer::new().await;
    let run = lab.run("0").await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    let retention = lab.retention();
    assert_eq!(RetentionPolicy::Deleted.read(&lab.site.table).await.unwrap(), None);
    assert!(!apply_policy(&retention).await.0);

    for (age, removed) in [("30d", 0), ("0s", 1)] {
        RetentionPolicy::Deleted.write(&lab.site.table, Some(&DeletionAge::parse(age).unwrap())).await.unwrap();
        assert_eq!(RetentionPolicy::Deleted.read(&lab.site.table).await.unwrap().unwrap().as_str(), age);
        let (is_set, outcome) = apply_policy(&retention).await;
        assert_eq!((is_set, outcome.removed.len()), (true, removed), "{age}");
    }
    assert!(lab.items(&run).await.is_empty());
    RetentionPolicy::Deleted.write(&lab.site.table, None).await.unwrap();
    assert_eq!(RetentionPolicy::Deleted.read(&lab.site.table).await.unwrap(), None);
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_removes_nothing() {
    let lab = TestServer::new().await;
    let row = Item::new(rows::Config::key(&"ttl_policy".into()));
    for row in [row.clone(), row.with("kept_for", text("soon"))] {
        lab.site.table.put(row, &Condition::Always).await.unwrap();
        assert!(RetentionPolicy::Deleted.read(&lab.site.table).await.is_err());
    }
}

/// If a call of the removal runs out of time, it may stop at any point, and the next calls
/// continue. Until an entity is removed, none of its rows are missing.
#[tokio::test]
async fn slices_that_run_out_of_time_come_to_an_end_together() {
    let lab = TestServer::new().await;
    let (kept, mut deleted) = (lab.run("0").await, Vec::new());
    for _ in 0..3 {
        deleted.push(lab.run("0").await);
    }
    let experiment = lab.experiment("goes").await;
    let of_experiment = lab.run(&experiment).await;
    lab.index().await;
    for run in &deleted {
        lab.post("runs/delete", json!({ "run_id": run })).await;
    }
    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
    RetentionPolicy::Deleted.write(&lab.site.table, Some(&DeletionAge::parse("0s").unwrap())).await.unwrap();

    let workspaces = Workspaces::new(lab.site.table.clone());
    let (mut slices, mut longest) = (0, Duration::ZERO);
    while !lab.retention().remove_for(longest, &workspaces, &LogReport).await.unwrap() {
        slices += 1;
        // The time limit grows with each call, so that calls are interrupted at different points.
        longest = longest.mul_f64(1.3) + Duration::from_millis(1);
        assert!(slices < 100, "it never ends");
    }
    assert!(slices > 0, "the first slice had no time");
    lab.index().await;
    for gone in deleted.iter().chain([&of_experiment]) {
        assert!(lab.items(gone).await.is_empty() && lab.artifacts(gone).is_empty());
    }
    assert!(lab.items("REMOVAL").await.is_empty());
    let found = lab.api.get("runs/get", &[("run_id", &kept)]).await.ok();
    assert_eq!(found["run"]["data"]["metrics"].as_array().unwrap().len(), 151);
}

#[tokio::test]
async fn a_slice_without_a_policy_removes_nothing_and_costs_little() {
    let lab = TestServer::new().await;
    let run = lab.run("0").await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    let meter = UsageMeter::default();
    let table = lab.site.table.metered(meter.clone());
    let retention = lab.retention_over(table.clone());
    assert!(retention.remove_for(Duration::from_mins(1), &Workspaces::new(table), &LogReport).await.unwrap());
    // Seven are for what has to be removed, and three for the archival of traces to files. The others
    // are for the archive.
    assert_eq!(meter.usage().requests, 17);
    assert!(!lab.items(&run).await.is_empty());
}
