//! A day with too many traces for one partition gets more partitions.

use entities::attributes::SHARDS;
use key_schema::{Ascending, rows};
use mlflow_api::ExperimentId;
use table::{Condition, Item, number};
use trace_blocks::TraceKey;

use super::test_packer::{TIME, TestPacker, id, partition};

impl TestPacker {
    /// Sets the number of the day's partitions.
    async fn set_partitions(&self, shards: i64) {
        let key = rows::TraceDay::key(&ExperimentId::DEFAULT, &Ascending(partition().day));
        self.table().put(Item::new(key).with(SHARDS, number(shards)), &Condition::Always).await.unwrap();
    }

    async fn partitions(&self) -> Option<u32> {
        let key = rows::TraceDay::key(&ExperimentId::DEFAULT, &Ascending(partition().day));
        self.table().get(&key).await.unwrap()?.get(SHARDS)
    }

    /// Writes the marks of new traces within a short time. Documents are not needed, because only
    /// marks are counted.
    async fn get(&self, traces: std::ops::Range<u32>) {
        let place = |trace: u32| TraceKey { time: TIME + i64::from(trace), trace: id(trace) };
        self.write(traces.map(|trace| self.mark(&place(trace)))).await;
        self.carry_over().await;
    }
}

#[tokio::test]
async fn a_day_gets_more_partitions_when_one_gets_too_many_traces() {
    let lab = TestPacker::new().await;
    lab.set_partitions(1).await;
    lab.get(0..250).await;
    assert_eq!(lab.partitions().await, Some(1), "one partition is enough for this rate");
    lab.passes(10_000);
    lab.get(250..510).await;
    assert_eq!(lab.partitions().await, Some(2));
    // Processes continue to use the old number of partitions for some seconds.
    lab.passes(30_000);
    lab.get(510..770).await;
    assert_eq!(lab.partitions().await, Some(2));
    lab.passes(30_000);
    lab.get(770..1_030).await;
    assert_eq!(lab.partitions().await, Some(4));
    lab.set_partitions(64).await;
    lab.passes(60_000);
    lab.get(1_030..1_290).await;
    assert_eq!(lab.partitions().await, Some(64), "the maximum");
}

#[tokio::test]
async fn a_day_that_is_gone_is_not_made_again() {
    let lab = TestPacker::new().await;
    lab.get(0..300).await;
    assert_eq!(lab.partitions().await, None);
}
