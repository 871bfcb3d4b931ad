//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use service::Route;

use crate::store::Store;

/// The registry domain: registered models, their versions, and prompts.
pub const DOMAIN: Domain = Domain::of::<Registry>(Function {
    name: "registry",
    resource: "Registry",
    description: "Registered models, their versions, and prompts.",
    paths: &[
        "/api/2.0/mlflow/registered-models/{*path}",
        "/ajax-api/2.0/mlflow/registered-models/{*path}",
        "/api/2.0/mlflow/model-versions/{*path}",
        "/ajax-api/2.0/mlflow/model-versions/{*path}",
        "/model-versions/{*path}",
    ],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::Only(&["LSI1", "LSI2", "GSI1"]),
        why: "What the function does, and no Scan. It reads runs and logged models, to see whether a source is theirs.",
    }),
    // The bucket rights let the function sign URLs for downloading the files of model versions.
    bucket: &[BucketRight::List, BucketRight::Read],
    settings: &[EnvironmentSetting::Artifacts],
    ..Function::BASE
});

struct Registry;

impl DomainApi for Registry {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let store = Store::new(around.table()?.clone(), &around.artifact_root);
        Ok(store.with_artifacts(around.artifacts.clone()).with_workspaces(around.has_workspaces))
    }
}
