//! Which fields the index holds, as searches may rely on it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use entities::fields::{LEASE, Setting};
use mlflow_api::Result;
use search::IndexedFields;

use super::Store;
use super::gate::moment;

/// What was last read of the setting, and when.
pub(super) type FieldsCache = Mutex<Option<((Instant, SystemTime), IndexedFields)>>;

impl Store {
    /// The fields that searches may rely on. No request, or one a minute.
    pub(super) async fn indexed_fields(&self) -> Result<IndexedFields> {
        let known = self.indexed_fields.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, fields)) = known.filter(|(since, _)| age(*since) < LEASE) {
            return Ok(fields);
        }
        let since = moment();
        let fields = Setting::read(&self.table).await?.searched;
        *self.indexed_fields.lock().unwrap_or_else(PoisonError::into_inner) = Some((since, fields.clone()));
        Ok(fields)
    }
}

/// By both clocks: a frozen sandbox may stop one of them.
fn age((instant, time): (Instant, SystemTime)) -> Duration {
    instant.elapsed().max(time.elapsed().unwrap_or(Duration::MAX))
}
