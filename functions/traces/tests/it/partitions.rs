//! Days whose number of partitions is increased.

use std::collections::BTreeSet;

use entities::attributes::SHARDS;
use key_schema::{Ascending, rows};
use mlflow_api::ExperimentId;
use serde_json::json;
use table::{Update, number};
use test_site::key_of;
use trace_blocks::{TracePartition, is_mark};

use crate::server::{Site, id, span};

const DAY_MS: u64 = 86_400_000;
/// The day on which the traces of these tests start.
const DAY: i64 = 19_675;

/// Returns the partitions that have marks.
async fn partitions(site: &Site) -> BTreeSet<(i64, u32)> {
    let items = site.items().await;
    let marks = items.iter().map(key_of).filter(is_mark);
    marks.filter_map(|key| TracePartition::of_key(&key)).map(|partition| (partition.day, partition.shard)).collect()
}

async fn make(site: &Site, day: i64, shards: u32) {
    let update = Update::new(rows::TraceDay::key(&ExperimentId::DEFAULT, &Ascending(day))).set(SHARDS, number(shards));
    site.table.apply(&update).await.unwrap();
}

#[tokio::test]
async fn traces_are_found_in_all_partitions_and_stay_where_they_began() {
    let site = Site::new().await;
    for trace in 0..10 {
        site.server.export(&[span(trace, 1, None, u64::from(trace), 100)]).await.ok();
    }
    assert_eq!(partitions(&site).await, BTreeSet::from([(DAY, 0)]));
    make(&site, DAY, 4).await;
    let other = site.other().await;
    for trace in 10..40 {
        other.export(&[span(trace, 1, None, u64::from(trace), 100)]).await.ok();
    }
    assert_eq!(partitions(&site).await, (0..4).map(|shard| (DAY, shard)).collect());
    // Earlier traces stay in the first partition, even if they are changed by a process that has
    // read the new number of partitions.
    for trace in 0..10 {
        let tag = json!({ "key": "k", "value": "v" });
        other.call("PATCH", &format!("traces/{}/tags", id(trace)), tag).await.ok();
        other.export(&[span(trace, 2, Some(1), u64::from(trace), 100)]).await.ok();
    }
    let newest_first: Vec<_> = (0..40).rev().map(id).collect();
    for (server, page) in [(&site.server, 3), (&other, 500)] {
        assert_eq!(server.found(&["0"], "", "", page).await, newest_first, "{page}");
    }
    let until = json!({ "experiment_id": "0", "max_timestamp_millis": 1_700_000_000_019_u64, "max_traces": 100 });
    let deleted = other.call_at("POST", "/api/2.0/mlflow/traces/delete-traces", until.to_string()).await.ok();
    assert_eq!(deleted["traces_deleted"], 20);
    assert_eq!(site.server.found(&["0"], "", "", 7).await, newest_first[..20]);
}

#[tokio::test]
async fn a_day_begins_with_as_many_partitions_as_the_day_before() {
    let site = Site::new().await;
    site.server.export(&[span(99, 1, None, 0, 10)]).await.ok();
    make(&site, DAY, 4).await;
    let other = site.other().await;
    // A day gets as many partitions as the previous day, but only one if the previous day has no
    // traces.
    for (days, shards) in [(0, 4), (1, 4), (3, 1)] {
        let traces = (0..24).map(|number| u32::try_from(days).unwrap() * 100 + number);
        for trace in traces {
            let from = days * DAY_MS + u64::from(trace);
            other.export(&[span(trace, 1, None, from, from + 10)]).await.ok();
        }
        let day = DAY + i64::try_from(days).unwrap();
        let used: BTreeSet<_> = partitions(&site).await.into_iter().filter(|(of, _)| *of == day).collect();
        assert_eq!(used, (0..shards).map(|shard| (day, shard)).collect(), "{days}");
    }
}
