//! Declares the domain: its function in the stack, and how it is mounted.

use domain::{
    BucketRight, Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions,
    TableRights,
};
use service::Route;

use crate::store::Store;

/// GraphQL, for the user interface. Read-only.
pub const DOMAIN: Domain = Domain::of::<Graphql>(Function {
    name: "graphql",
    resource: "Graphql",
    description: "GraphQL, for the user interface. Read-only.",
    paths: &["/graphql"],
    table: Some(TableRights {
        actions: TableActions::Read,
        indexes: Indexes::All,
        why: "The endpoints that it calls read the table.",
    }),
    // The function lists the files of runs, but does not read them.
    bucket: &[BucketRight::List],
    settings: &[EnvironmentSetting::Artifacts],
    ..Function::BASE
})
.calling_others();

struct Graphql;

impl DomainApi for Graphql {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        Ok(Store::new(around.table()?.clone(), around.calls.clone())?)
    }
}
