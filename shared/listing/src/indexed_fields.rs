//! Which fields the index holds, as searches may rely on it.

use std::sync::{Arc, Mutex, PoisonError};

use entities::Moment;
use entities::fields::{LEASE, Setting};
use mlflow_api::Result;
use search::IndexedFields;
use table::Table;

/// The setting of indexed fields, as this process last read it. Cheap to clone; clones share the
/// cache.
#[derive(Clone)]
pub struct IndexedFieldsCache {
    table: Table,
    /// The setting, and when it was last read.
    known: Arc<Mutex<Option<(Moment, IndexedFields)>>>,
}

impl IndexedFieldsCache {
    /// Of a table whose setting was not read yet.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::default() }
    }

    /// The fields that searches may rely on. No request, or one a minute.
    pub async fn get(&self) -> Result<IndexedFields> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, fields)) = known.filter(|(since, _)| since.age() < LEASE) {
            return Ok(fields);
        }
        let since = Moment::now();
        let fields = Setting::read(&self.table).await?.searched;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((since, fields.clone()));
        Ok(fields)
    }
}
