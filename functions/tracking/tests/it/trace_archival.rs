//! The settings that define when the traces of an experiment are archived.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use entities::trace_archival::{ArchivalAge, ArchivalSettingChange, TraceArchivalCache, TraceArchivalSetting};
use entities::workspaces::{WorkspaceChange, Workspaces};
use mlflow_api::{ArchivalRetention, ExperimentId, Workspace};
use serde_json::json;

use crate::server::Site;

const TAG: &str = "mlflow.trace.archivalRetention";

fn age(text: &str) -> ArchivalAge {
    ArchivalAge::parse(text).unwrap()
}

/// Returns the retention of an experiment as a new process reads it.
async fn retention_of(site: &Site, id: ExperimentId) -> Option<String> {
    let found = TraceArchivalCache::new(site.table.clone()).experiments(&[id]).await.unwrap();
    found[&id].retention.as_ref().map(|retention| retention.as_str().to_owned())
}

#[tokio::test]
async fn a_setting_is_read_as_it_was_written() {
    let table = Site::new().await.table.clone();
    let default = TraceArchivalSetting::default();
    assert_eq!(TraceArchivalSetting::read(&table).await.unwrap(), default);
    assert_eq!(default.age, age("30d"));
    let written = TraceArchivalSetting {
        age: ArchivalAge::Off,
        location: Some("s3://bucket/archive".to_owned()),
        allowlist: BTreeSet::from([ExperimentId::DEFAULT, ExperimentId::parse("17").unwrap()]),
        per_pass: NonZeroU32::new(5),
    };
    for change in [
        ArchivalSettingChange::Age(Some(written.age.clone())),
        ArchivalSettingChange::Location(written.location.clone()),
        ArchivalSettingChange::Allowlist(written.allowlist.clone()),
        ArchivalSettingChange::PerPass(written.per_pass),
    ] {
        TraceArchivalSetting::change(&table, &change).await.unwrap();
    }
    assert_eq!(TraceArchivalSetting::read(&table).await.unwrap(), written);
    for change in [
        ArchivalSettingChange::Age(None),
        ArchivalSettingChange::Location(None),
        ArchivalSettingChange::Allowlist(BTreeSet::new()),
        ArchivalSettingChange::PerPass(None),
    ] {
        TraceArchivalSetting::change(&table, &change).await.unwrap();
    }
    assert_eq!(TraceArchivalSetting::read(&table).await.unwrap(), default);
    let ids = (0..=1_000).map(|id| ExperimentId::from_number(id).unwrap());
    for wrong in
        [ArchivalSettingChange::Location(Some("/x".to_owned())), ArchivalSettingChange::Allowlist(ids.collect())]
    {
        assert!(TraceArchivalSetting::change(&table, &wrong).await.is_err());
    }
}

#[tokio::test]
async fn an_experiment_has_the_retention_of_its_tag_its_workspace_or_the_server() {
    let site = Site::new().await;
    let id = ExperimentId::parse(&site.server.experiment("e").await).unwrap();
    let set = async |retention: &str| {
        let value = ArchivalRetention::parse(retention).unwrap().to_tag();
        let tag = json!({ "experiment_id": id.to_string(), "key": TAG, "value": value });
        site.server.post("experiments/set-experiment-tag", tag).await.ok();
    };
    assert_eq!(retention_of(&site, id).await.as_deref(), Some("30d"));
    set("12h").await;
    assert_eq!(retention_of(&site, id).await.as_deref(), Some("12h"));
    set("60d").await;
    assert_eq!(retention_of(&site, id).await.as_deref(), Some("30d"));
    let allowed = ArchivalSettingChange::Allowlist(BTreeSet::from([id]));
    TraceArchivalSetting::change(&site.table, &allowed).await.unwrap();
    assert_eq!(retention_of(&site, id).await.as_deref(), Some("60d"));
    TraceArchivalSetting::change(&site.table, &ArchivalSettingChange::Age(Some(ArchivalAge::Off))).await.unwrap();
    assert_eq!(retention_of(&site, id).await, None);
    let workspace = WorkspaceChange {
        archive: Some("s3://b/x".to_owned()),
        archive_after: Some("90d".to_owned()),
        ..WorkspaceChange::default()
    };
    Workspaces::new(site.table.clone()).change(&Workspace::default(), &workspace).await.unwrap();
    assert_eq!(retention_of(&site, id).await.as_deref(), Some("60d"));

    let cache = TraceArchivalCache::new(site.table.clone());
    let other = ExperimentId::parse("12345").unwrap();
    let found = cache.experiments(&[id, other]).await.unwrap();
    assert_eq!(found[&id].location.as_deref(), Some("s3://b/x"));
    assert!(!found.contains_key(&other));
    site.server.post("experiments/delete", json!({ "experiment_id": id.to_string() })).await.ok();
    assert!(cache.experiments(&[id]).await.unwrap().is_empty());
}
