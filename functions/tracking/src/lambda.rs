//! What a cold start prepares, from the function's environment.

use artifact_store::Artifacts;
use mlflow_api::Workspace;
use table::Table;

use crate::store::Store;

/// The store over the table of the environment ([`Table::from_environment`]). `ARTIFACT_ROOT` is where experiments keep their
/// artifacts; [`Artifacts::from_environment`] says where the server keeps them. Looks at the table's layout, so that the connection stands before the first call.
///
/// # Errors
/// A variable is missing, the table cannot be reached, or it has the layout of another version.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let artifact_root =
        std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let artifacts = Artifacts::from_environment(&artifact_root);
    let table = Table::from_environment().await?;
    let store = Store::new(table.clone(), &artifact_root).with_artifacts(artifacts);
    if !entities::layout::check(&table).await? {
        store.experiment_create_default(&Workspace::default()).await?;
    }
    Ok(store)
}
