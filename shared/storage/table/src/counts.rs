//! How many items there are, without reading them.

use crate::{Result, Table};

impl Table {
    /// The number of items in a local index, as the engine has counted them: DynamoDB does so some
    /// six hours apart. `None` if it does not say. One request, without a capacity unit.
    ///
    /// # Errors
    /// The table is missing, or cannot be asked.
    pub async fn count_of_index(&self, index: &str) -> Result<Option<u64>> {
        let described = self.retry.run(|| self.client.describe_table().table_name(&self.name).send()).await?;
        let indexes = described.table.and_then(|table| table.local_secondary_indexes).unwrap_or_default();
        let counted = indexes.into_iter().find(|one| one.index_name.as_deref() == Some(index));
        Ok(counted.and_then(|one| one.item_count).and_then(|count| u64::try_from(count).ok()))
    }
}
