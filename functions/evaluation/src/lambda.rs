//! What a cold start prepares, from the function's environment.

use table::Table;

use crate::store::Store;

/// The store over the table of the environment ([`Table::from_environment`]). Looks at the table's layout, so that the
/// connection stands before the first call.
///
/// # Errors
/// A variable is missing, the table cannot be reached, or it has the layout of another version.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let store = Store::new(Table::from_environment().await?);
    entities::layout::check(service::Store::table(&store)).await?;
    Ok(store)
}
