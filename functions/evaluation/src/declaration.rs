//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{Domain, DomainApi, Environment, Function, Indexes, MountFailure, TableActions, TableRights};
use service::Route;

use crate::store::Store;

/// The evaluation domain: evaluation datasets with their records, scorers, label schemas, review
/// queues and issues.
pub const DOMAIN: Domain = Domain::of::<Evaluation>(Function {
    name: "evaluation",
    resource: "Evaluation",
    description: "Evaluation datasets with their records, scorers, label schemas, review queues and issues.",
    paths: &[
        "/api/3.0/mlflow/datasets/{*path}",
        "/ajax-api/3.0/mlflow/datasets/{*path}",
        "/api/3.0/mlflow/scorers/{*path}",
        "/ajax-api/3.0/mlflow/scorers/{*path}",
        "/api/3.0/mlflow/label-schemas/{*path}",
        "/ajax-api/3.0/mlflow/label-schemas/{*path}",
        "/api/3.0/mlflow/review-queues/{*path}",
        "/ajax-api/3.0/mlflow/review-queues/{*path}",
        "/api/3.0/mlflow/issues",
        "/ajax-api/3.0/mlflow/issues",
        "/api/3.0/mlflow/issues/{*path}",
        "/ajax-api/3.0/mlflow/issues/{*path}",
    ],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::Only(&["LSI1", "GSI1"]),
        why: "What the function does, and no Scan. LSI1 sorts the items of review queues. GSI1 finds runs whose ids other servers made.",
    }),
    ..Function::BASE
});

struct Evaluation;

impl DomainApi for Evaluation {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn constants() -> Vec<Route<Store>> {
        crate::disabled_features::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        Ok(Store::new(around.table()?.clone()))
    }
}
