//! Which fields the index holds, as searches may rely on it.

use std::sync::{Arc, Mutex, PoisonError};

use entities::Moment;
use entities::fields::{LEASE, Setting};
use mlflow_api::{ExperimentId, Result};
use search::CommonFields;
use table::Table;

/// The setting of indexed fields, as this process last read it. Cheap to clone; clones share the
/// cache.
#[derive(Clone)]
pub struct IndexedFieldsCache {
    table: Table,
    /// As it was last read.
    known: Arc<Mutex<Option<Known>>>,
}

#[derive(Clone)]
struct Known {
    since: Moment,
    setting: Arc<Setting>,
}

impl IndexedFieldsCache {
    /// Of a table whose setting was not read yet.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::default() }
    }

    /// The fields that a search through these experiments may rely on. No request, or one a minute.
    pub async fn of(&self, experiments: impl IntoIterator<Item = &ExperimentId>) -> Result<CommonFields> {
        Ok(self.setting().await?.searched_in(experiments))
    }

    async fn setting(&self) -> Result<Arc<Setting>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.since.age() < LEASE) {
            return Ok(known.setting);
        }
        let since = Moment::now();
        let setting = Arc::new(Setting::read(&self.table).await?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Known { since, setting: Arc::clone(&setting) });
        Ok(setting)
    }
}
