//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use mlflow_api::skills::ContentLimits;
use service::Route;

use crate::store::Store;

/// The domain of the skill registry: skills, their versions, and uploaded content.
pub const DOMAIN: Domain = Domain::of::<Skills>(Function {
    name: "skills",
    resource: "Skills",
    description: "The registry of skills. Unpacks uploaded archives and stores their files.",
    paths: &[
        "/api/3.0/mlflow/skills",
        "/ajax-api/3.0/mlflow/skills",
        "/api/3.0/mlflow/skills/{*path}",
        "/ajax-api/3.0/mlflow/skills/{*path}",
    ],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::None,
        why: "What the function does, and no Scan. It reads no index.",
    }),
    bucket: &[BucketRight::List, BucketRight::Write],
    settings: &[EnvironmentSetting::Artifacts],
    ..Function::BASE
});

struct Skills;

impl DomainApi for Skills {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let limits = if around.is_lambda { ContentLimits::LAMBDA } else { ContentLimits::MLFLOW };
        Ok(Store::new(around.table()?.clone(), around.artifacts.clone(), limits))
    }
}
