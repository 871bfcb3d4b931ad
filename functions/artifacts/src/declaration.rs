//! Declares the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use service::Route;

use crate::store::Store;

/// Artifacts through the server. Files are transferred directly between clients and a bucket; only
/// small uploads pass through this function.
pub const DOMAIN: Domain = Domain::of::<Artifacts>(Function {
    name: "artifacts",
    resource: "Artifacts",
    description: "Artifacts through the server. Files are transferred directly between clients and the bucket, by presigned \
                  URLs; only small uploads pass through this function.",
    paths: &[
        "/api/2.0/mlflow-artifacts/{*path}",
        "/ajax-api/2.0/mlflow-artifacts/{*path}",
        "/api/2.0/mlflow/artifacts/{*path}",
        "/ajax-api/2.0/mlflow/artifacts/{*path}",
        "/ajax-api/2.0/mlflow/upload-artifact",
        "/get-artifact",
    ],
    table: Some(TableRights {
        actions: TableActions::Read,
        indexes: Indexes::Only(&["GSI1"]),
        why: "It reads the artifact locations of runs and logged models, and looks up ids that were created elsewhere.",
    }),
    bucket: &[BucketRight::List, BucketRight::Change],
    settings: &[EnvironmentSetting::Artifacts, EnvironmentSetting::MaxArtifactSize],
    ..Function::BASE
});

struct Artifacts;

impl DomainApi for Artifacts {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let store = Store::new(around.table()?.clone(), around.artifacts.clone());
        Ok(store.with_max_upload_bytes(around.max_artifact_bytes))
    }

    /// Removes the leftovers of interrupted uploads, if the artifacts are in a directory.
    async fn prepare(store: Store, _: &Environment) -> Result<Store, MountFailure> {
        if let Some(directory) = store.artifacts().directory() {
            match directory.remove_leftovers().await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "removed the leftovers of interrupted uploads"),
                Err(error) => tracing::warn!(%error, "failed to remove the leftovers of interrupted uploads"),
            }
        }
        Ok(store)
    }
}
