//! Warnings about partitions that are nearly full. In a table with local indexes, all items with
//! one partition key share a limit of 10 GB. DynamoDB returns the current size in the response to a
//! write that requests it, at no cost
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/LSI.html#LSI.ItemCollections.SizeLimit>).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::ItemCollectionMetrics;
use key_schema::definition::PK;
use runtime::clock::Moment;

/// Size in GB from which a partition is reported.
const NEARLY_FULL_GB: f64 = 8.0;
/// Interval at which a process repeats the warning about a partition. It is shorter than an hour
/// because the alarm evaluates the log hourly.
const WARNING_INTERVAL: Duration = Duration::from_mins(20);
/// Capacity of the map of reported partitions. When it is full, it is cleared.
const MAX_REPORTED_PARTITIONS: usize = 1_000;

/// The partitions that were reported recently. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectionSizes(
    // A std mutex: no await happens while it is held.
    Arc<Mutex<HashMap<String, Moment>>>,
);

impl CollectionSizes {
    /// Logs a warning for each nearly full partition that the response to a write reports.
    pub(crate) fn look<'a>(&self, metrics: impl IntoIterator<Item = &'a ItemCollectionMetrics>) {
        for metrics in metrics {
            if let Some((partition, gigabytes)) = nearly_full(metrics)
                && self.is_news(partition)
            {
                // An alarm in `template.yaml` matches this message.
                tracing::warn!(partition, gigabytes, "a partition is nearly full");
            }
        }
    }

    fn is_news(&self, partition: &str) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(partition).is_some_and(|moment| moment.age() < WARNING_INTERVAL) {
            return false;
        }
        if said.len() >= MAX_REPORTED_PARTITIONS {
            said.clear();
        }
        said.insert(partition.to_owned(), Moment::now());
        true
    }
}

/// Returns the partition and the lower bound of its size in GB. Returns `None` if the partition is
/// not nearly full.
fn nearly_full(metrics: &ItemCollectionMetrics) -> Option<(&str, f64)> {
    let at_least =
        metrics.size_estimate_range_gb().first().copied().filter(|gigabytes| *gigabytes >= NEARLY_FULL_GB)?;
    let partition = metrics.item_collection_key()?.get(PK)?.as_s().ok()?;
    Some((partition, at_least))
}
