//! What a cold start prepares, from the function's environment.

use table::Table;

use crate::store::Store;

/// The store over the table of the environment ([`Table::from_environment`]). Makes the first request, so that the connection
/// stands before the first call.
///
/// # Errors
/// A variable is missing, or the table cannot be reached.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let store = Store::new(Table::from_environment().await?);
    store.connect().await?;
    Ok(store)
}
