//! The configuration of single sign-on, from the access table.

use std::sync::Arc;

use identity_providers::Configuration;
use mlflow_api::Result;

use crate::store::Store;

/// Returns the configuration of single sign-on, or `None` if there is none. It is cached for up to a
/// minute. A missing configuration is not cached. Takes one request, or none if the configuration is
/// cached.
///
/// # Errors
/// Returns an error if the table cannot be read, or if a later version has stored the configuration.
pub(crate) async fn configuration(store: &Store) -> Result<Option<Arc<Configuration>>> {
    if let Some(cached) = store.sign_on().cached_configuration() {
        return Ok(Some(cached));
    }
    let Some(stored) = store.sign_on_configuration_get().await? else { return Ok(None) };
    let stored = Arc::new(stored);
    store.sign_on().cache_configuration(Arc::clone(&stored));
    Ok(Some(stored))
}
