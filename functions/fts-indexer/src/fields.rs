//! What is indexed beside what always is.

use entities::fields::Setting;
use search::IndexedFields;
use table::Result;

use crate::Indexer;

impl Indexer {
    /// What the table's configuration says is indexed. One request.
    pub(crate) async fn fields(&self) -> Result<IndexedFields> {
        Ok(Setting::read(&self.table).await?.indexed)
    }
}
