//! What a cold start prepares, from the function's environment.

use artifact_store::Artifacts;
use table::Table;

use crate::store::Store;

/// The store over the table of the environment ([`Table::from_environment`]). [`Artifacts::from_environment`] says where the server keeps
/// artifacts. Looks at the table's layout, so that the connection stands before the first call, and at how long traces are kept.
///
/// # Errors
/// A variable is missing, the table cannot be reached, or it has the layout of another version.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let artifact_root =
        std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let artifacts = Artifacts::from_environment(&artifact_root);
    let store = Store::new(Table::from_environment().await?, artifacts);
    entities::layout::check(service::Store::table(&store)).await?;
    Ok(store.prepared().await?)
}
