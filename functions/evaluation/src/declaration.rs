//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{Domain, DomainApi, Environment, Function, Indexes, MountFailure, TableActions, TableRights};
use service::Route;

use crate::store::Store;

/// The evaluation domain: evaluation datasets with their records, and scorers.
pub const DOMAIN: Domain = Domain::of::<Evaluation>(Function {
    name: "evaluation",
    resource: "Evaluation",
    description: "Evaluation datasets with their records, and scorers.",
    paths: &[
        "/api/3.0/mlflow/datasets/{*path}",
        "/ajax-api/3.0/mlflow/datasets/{*path}",
        "/api/3.0/mlflow/scorers/{*path}",
        "/ajax-api/3.0/mlflow/scorers/{*path}",
    ],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::None,
        why: "What the function does, and no Scan. It reads no index.",
    }),
    ..Function::BASE
});

struct Evaluation;

impl DomainApi for Evaluation {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        Ok(Store::new(around.table()?.clone()))
    }
}
