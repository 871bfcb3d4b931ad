//! Approximate item counts, without reading the items.

use crate::{Result, Table};

impl Table {
    /// Returns the approximate number of items in a local index, which DynamoDB updates about every
    /// six hours. `None` if the engine does not report it. Sends one request, which consumes no
    /// capacity.
    ///
    /// # Errors
    /// The table is missing, or the request fails.
    pub async fn count_of_index(&self, index: &str) -> Result<Option<u64>> {
        let described = self.retry.run(|| self.client.describe_table().table_name(&self.name).send()).await?;
        let indexes = described.table.and_then(|table| table.local_secondary_indexes).unwrap_or_default();
        let counted = indexes.into_iter().find(|one| one.index_name.as_deref() == Some(index));
        Ok(counted.and_then(|one| one.item_count).and_then(|count| u64::try_from(count).ok()))
    }
}
