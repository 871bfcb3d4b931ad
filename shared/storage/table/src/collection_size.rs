//! Partitions that will soon be full. A table with local indexes holds 10 GB under one partition key. DynamoDB says with a write how much
//! there is, if it is asked, which costs nothing
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/LSI.html#LSI.ItemCollections.SizeLimit>).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::ItemCollectionMetrics;
use clock::Moment;
use key_schema::definition::PK;

/// GB from which on it is said.
const NEARLY_FULL: f64 = 8.0;
/// How long a process does not say it again of the same partition: the alarm looks every hour.
const AGAIN: Duration = Duration::from_mins(20);
/// Partitions remembered at a time.
const MOST_REMEMBERED: usize = 1_000;

/// The partitions that are known to be nearly full. Clones share this knowledge.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectionSizes(
    // A std mutex: nothing is awaited while it is held.
    Arc<Mutex<HashMap<String, Moment>>>,
);

impl CollectionSizes {
    /// Says in the log which of the partitions that were written to are nearly full.
    pub(crate) fn look<'a>(&self, metrics: impl IntoIterator<Item = &'a ItemCollectionMetrics>) {
        for metrics in metrics {
            if let Some((partition, gigabytes)) = nearly_full(metrics)
                && self.is_news(partition)
            {
                // The template has an alarm on this message.
                tracing::warn!(partition, gigabytes, "a partition is nearly full");
            }
        }
    }

    fn is_news(&self, partition: &str) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(partition).is_some_and(|moment| moment.age() < AGAIN) {
            return false;
        }
        if said.len() >= MOST_REMEMBERED {
            said.clear();
        }
        said.insert(partition.to_owned(), Moment::now());
        true
    }
}

/// A partition, and the least that it has in GB, if that is much.
fn nearly_full(metrics: &ItemCollectionMetrics) -> Option<(&str, f64)> {
    let at_least = metrics.size_estimate_range_gb().first().copied().filter(|gigabytes| *gigabytes >= NEARLY_FULL)?;
    let partition = metrics.item_collection_key()?.get(PK)?.as_s().ok()?;
    Some((partition, at_least))
}
