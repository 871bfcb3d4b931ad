//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{Api, BucketRight, Domain, Failure, Function, Indexes, Setting, Surroundings, TableActions, TableRights};
use mlflow_api::Workspace;
use service::Route;

use crate::store::Store;

/// The tracking domain: experiments, runs, metrics, params, tags, logged models, datasets of runs,
/// and every path that no other domain declares.
pub const DOMAIN: Domain = Domain::of::<Tracking>(Function {
    name: "tracking",
    resource: "Tracking",
    description: "Experiments, runs, metrics, params, tags, logged models, datasets of runs; and unknown paths.",
    paths: &[Function::EVERYTHING_ELSE],
    table: Some(TableRights {
        actions: TableActions::Write,
        indexes: Indexes::All,
        why: "What the function does, and no Scan. A transaction is authorized by the actions of its parts.",
    }),
    // The function lists the files of logged models, and signs URLs for downloading them.
    bucket: &[BucketRight::List, BucketRight::Read],
    settings: &[Setting::Artifacts, Setting::PresignedOnly],
    has_concurrency: true,
    ..Function::BASE
});

struct Tracking;

impl Api for Tracking {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn constants() -> Vec<Route<Store>> {
        crate::absent::routes()
    }

    fn store(around: &Surroundings) -> Result<Store, Failure> {
        let store = Store::new(around.table()?.clone(), &around.artifact_root);
        let store = store.with_artifacts(around.artifacts.clone());
        let store = if around.has_workspaces { store.in_workspaces() } else { store };
        Ok(match &around.directory {
            Some(directory) => store.in_directory(directory),
            None => store,
        })
    }

    /// Creates the default experiment if the table is new.
    async fn prepared(store: Store, around: &Surroundings) -> Result<Store, Failure> {
        if around.is_new_table {
            store.experiment_create_default(&Workspace::default()).await?;
        }
        Ok(store)
    }
}
