//! All domains over a table, without a socket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use access::{Authorizer, Caller, Identity, User, Visibility};
use artifact_store::ArtifactStore;
use axum::Router;
use domain::{Domain, Environment};
use domains::DOMAINS;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use serde_json::Value;
use table::Table;
use test_site::TestAuthorizer;
use test_site::route_samples::SAMPLE_USER;
pub(crate) use test_site::route_samples::{ROOT, ReadRequest};

pub(crate) const TABLE: &str = "mlflow";

/// Returns the domains that use the table: all except the user interface, which only serves files.
pub(crate) fn of_table() -> Vec<&'static Domain> {
    DOMAINS.into_iter().filter(|domain| domain.function.table.is_some()).collect()
}

/// Returns the domains of [`of_table`] for a single user with full access, as in `serve`. Artifacts
/// are stored elsewhere.
pub(crate) async fn functions(table: &Table) -> Router {
    mounted(table, ArtifactStore::below(ROOT), all_as_one()).await
}

/// Returns the domains of [`of_table`] for a single user with full access. Artifacts are stored in
/// a directory.
pub(crate) async fn with_files(table: &Table, directory: &Path) -> Router {
    mounted(table, ArtifactStore::in_directory(directory), all_as_one()).await
}

pub(crate) fn all_as_one() -> Arc<dyn Authorizer> {
    Arc::new(TestAuthorizer::of_asks(Visibility::Everything, |_| true).knowing(walker()))
}

/// Returns the user who sends the requests of a walk.
pub(crate) fn walker() -> Identity {
    let user = User { name: UserName::new(SAMPLE_USER).unwrap(), id: 1, is_admin: true, roles: Vec::new(), version: 1 };
    Identity { caller: Caller::User(Arc::new(user)), ..Identity::anonymous() }
}

/// Returns the domains of [`of_table`] with the given artifacts and authorizer. Nothing is written
/// to the table. Users are in a table of their own, which contains the walker.
pub(crate) async fn mounted(table: &Table, artifacts: ArtifactStore, authorizer: Arc<dyn Authorizer>) -> Router {
    domain::mount(&of_table(), &[], &with_walker(table, artifacts, authorizer).await).await.unwrap()
}

/// Returns the environment of [`mounted`].
pub(crate) async fn with_walker(
    table: &Table,
    artifacts: ArtifactStore,
    authorizer: Arc<dyn Authorizer>,
) -> Environment {
    let access = table.beside(format!("{TABLE}-access"));
    access.create_access_if_missing().await.unwrap();
    let around = Environment::new(Arc::clone(&authorizer), table.clone()).with_artifacts(ROOT, artifacts);
    let around = around.with_users(table.clone(), access.clone(), PermissionLevel::NoPermissions);
    let store = auth::store::Store::new(table.clone(), access, around.user_authorizer.clone().unwrap());
    if !store.has_users().await.unwrap() {
        let name = UserName::new(SAMPLE_USER).unwrap();
        store.user_create(&name, "a password of the walk".to_owned(), true).await.unwrap();
    }
    // The table has rows of workspaces, whichever authorizer is used.
    Environment { authorizer, has_workspaces: true, ..around }
}

/// Returns whether a domain writes to the table.
pub(crate) fn writes_to_the_table(domain: &str) -> bool {
    let of_name = of_table().into_iter().find(|known| known.function.name == domain);
    of_name.and_then(|domain| domain.function.table.as_ref()).is_some_and(|rights| rights.actions.writes())
}

/// Returns the method and canonical path of the selected routes of the domains of [`of_table`].
pub(crate) fn routes(wanted: impl Fn(&Domain, &domain::EndpointInfo) -> bool) -> BTreeSet<String> {
    let of_domain = |domain: &'static Domain| (domain.endpoints)().into_iter().map(move |endpoint| (domain, endpoint));
    let wanted = of_table().into_iter().flat_map(of_domain).filter(|(domain, endpoint)| wanted(domain, endpoint));
    wanted.map(|(_, endpoint)| endpoint.name()).collect()
}

/// Returns the status and body of the response to a request.
pub(crate) async fn send(router: &Router, method: &'static str, path: &str, body: &Value) -> (u16, Value) {
    ReadRequest { method, path: path.to_owned(), body: body.clone() }.answer(router).await
}
