//! Declares the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use service::Route;

use crate::store::Store;

/// Traces, their spans and assessments: the OpenTelemetry protocol, MLflow's endpoints, and the
/// artifacts of traces.
pub const DOMAIN: Domain = Domain::of::<Traces>(Function {
    name: "traces",
    resource: "Traces",
    description: "The OpenTelemetry protocol, traces with their spans and assessments, and the files of traces.",
    paths: &[
        "/v1/traces",
        "/api/2.0/mlflow/traces",
        "/api/2.0/mlflow/traces/{*path}",
        "/ajax-api/2.0/mlflow/traces",
        "/ajax-api/2.0/mlflow/traces/{*path}",
        "/api/3.0/mlflow/traces",
        "/api/3.0/mlflow/traces/{*path}",
        "/ajax-api/3.0/mlflow/traces",
        "/ajax-api/3.0/mlflow/traces/{*path}",
        "/ajax-api/2.0/mlflow/get-trace-artifact",
        "/ajax-api/3.0/mlflow/get-trace-artifact",
    ],
    table: Some(TableRights {
        actions: TableActions::Change,
        indexes: Indexes::Only(&["GSI1"]),
        why: "The actions that the function uses, without Scan. It looks up runs whose ids were created elsewhere, and traces by clients' request ids.",
    }),
    // The bucket rights let the function return files that clients uploaded with their traces, and
    // the spans of archived traces, which it also deletes.
    bucket: &[BucketRight::List, BucketRight::Read, BucketRight::Delete, BucketRight::OffloadResponses],
    settings: &[EnvironmentSetting::Artifacts],
    ..Function::BASE
})
.offloading_responses();

struct Traces;

impl DomainApi for Traces {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let store = Store::new(around.table()?.clone(), around.artifacts.clone()).with_layout(around.layout);
        Ok(if around.has_workspaces { store.in_workspaces() } else { store })
    }

    /// Reads the retention policies of traces at startup.
    async fn prepare(store: Store, _: &Environment) -> Result<Store, MountFailure> {
        Ok(store.prepared().await?)
    }
}
