//! What a cold start prepares, from the function's environment.

use artifact_store::Artifacts;
use service::Frame;
use table::Table;

use crate::store::Store;

/// The store over the table of the environment ([`Table::from_environment`]), and `ARTIFACT_ROOT`, which the endpoints of the other functions
/// know; [`Artifacts::from_environment`] says where the server keeps artifacts. Looks at the table's layout, so that the connection stands before the first call.
///
/// # Errors
/// A variable is missing, the table cannot be reached, or it has the layout of another version.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let artifact_root =
        std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let table = Table::from_environment().await?;
    entities::layout::check(&table).await?;
    let tracking = tracking::store::Store::new(table.clone(), &artifact_root);
    let registry = registry::store::Store::new(table.clone(), &artifact_root);
    let files = artifacts::store::Store::new(table.clone(), Artifacts::from_environment(&artifact_root));
    let store = Store::new(table, &Frame::new(tracking), &Frame::new(registry))?;
    Ok(store.with_artifacts(&Frame::new(files)))
}
