//! A cache of the indexed fields that searches may rely on.

use std::sync::{Arc, Mutex, PoisonError};

use entities::Moment;
use entities::indexed_fields_setting::{IndexedFieldsSetting, LEASE_DURATION};
use mlflow_api::{ExperimentId, Result};
use search::CommonFields;
use table::Table;

/// A per-process cache of the setting of indexed fields. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct IndexedFieldsCache {
    table: Table,
    /// The setting as it was last read.
    known: Arc<Mutex<Option<CachedSetting>>>,
}

#[derive(Clone)]
struct CachedSetting {
    since: Moment,
    setting: Arc<IndexedFieldsSetting>,
}

impl IndexedFieldsCache {
    /// Creates an empty cache for a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::default() }
    }

    /// Returns the fields whose index a search across these experiments may rely on. Sends at most
    /// one request per minute.
    pub async fn of(&self, experiments: impl IntoIterator<Item = &ExperimentId>) -> Result<CommonFields> {
        Ok(self.setting().await?.searched_in(experiments))
    }

    async fn setting(&self) -> Result<Arc<IndexedFieldsSetting>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.since.age() < LEASE_DURATION) {
            return Ok(known.setting);
        }
        let since = Moment::now();
        let setting = Arc::new(IndexedFieldsSetting::read(&self.table).await?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(CachedSetting { since, setting: Arc::clone(&setting) });
        Ok(setting)
    }
}
