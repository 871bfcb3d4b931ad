//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use mlflow_api::Workspace;
use mlflow_api::skills::ContentLimits;
use service::Route;

use crate::store::Store;

/// The tracking domain: experiments, runs, metrics, params, tags, logged models, datasets of runs,
/// and every path that no other domain declares.
pub const DOMAIN: Domain = Domain::of::<Tracking>(Function {
    name: "tracking",
    resource: "Tracking",
    description: "Experiments, runs, metrics, params, tags, logged models, datasets of runs; and unknown paths.",
    paths: &[Function::CATCH_ALL_PATH],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::All,
        why: "What the function does, and no Scan. A transaction is authorized by the actions of its parts.",
    }),
    // The bucket rights let the function list the files of logged models, and sign URLs for
    // downloading them.
    bucket: &[BucketRight::List, BucketRight::Read],
    settings: &[EnvironmentSetting::Artifacts, EnvironmentSetting::PresignedOnly],
    has_concurrency: true,
    ..Function::BASE
});

struct Tracking;

impl DomainApi for Tracking {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn constants() -> Vec<Route<Store>> {
        crate::ui_placeholders::routes().into_iter().chain(crate::disabled_features::routes()).collect()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let store = Store::new(around.table()?.clone(), &around.artifact_root);
        let store = store.with_artifacts(around.artifacts.clone()).with_layout(around.layout);
        let store = if around.has_workspaces { store.in_workspaces() } else { store };
        let store = if around.is_lambda { store.with_skill_limits(ContentLimits::LAMBDA) } else { store };
        Ok(match &around.working_directory {
            Some(directory) => store.in_directory(directory),
            None => store,
        })
    }

    /// Creates the default experiment if the table is new, and reads the setting for the archival of
    /// traces.
    async fn prepare(store: Store, around: &Environment) -> Result<Store, MountFailure> {
        if around.is_new_table {
            store.experiment_create_default(&Workspace::default()).await?;
        }
        // The setting is cached, so that the first requests need not read it. If it cannot be read,
        // the requests log the reason.
        store.has_trace_archival().await;
        Ok(store)
    }
}
