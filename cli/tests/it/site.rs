//! All domains over a table, without a socket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use access::Authorizer;
use artifact_store::Artifacts;
use axum::Router;
use domain::{Domain, Surroundings};
use domains::DOMAINS;
pub(crate) use samples::{ROOT, Read};
use serde_json::Value;
use table::Table;
use test_site::everybody;

pub(crate) const TABLE: &str = "mlflow";

/// The domains that know the table: all but the user interface, which has files only.
pub(crate) fn of_table() -> Vec<&'static Domain> {
    DOMAINS.into_iter().filter(|domain| domain.function.table.is_some()).collect()
}

/// Those domains as in `serve`, everybody admitted. Artifacts are elsewhere.
pub(crate) async fn functions(table: &Table) -> Router {
    mounted(table, Artifacts::below(ROOT), everybody()).await
}

/// The same with artifacts in a directory.
pub(crate) async fn with_files(table: &Table, directory: &Path) -> Router {
    mounted(table, Artifacts::in_directory(directory), everybody()).await
}

/// Those domains with these artifacts and this authorizer. Nothing is written to the table.
pub(crate) async fn mounted(table: &Table, artifacts: Artifacts, authorizer: Arc<dyn Authorizer>) -> Router {
    let around = Surroundings::new(authorizer, table.clone()).with_artifacts(ROOT, artifacts);
    domain::mount(&of_table(), &[], &around).await.unwrap()
}

/// Whether a domain writes to the table.
pub(crate) fn writes_to_the_table(domain: &str) -> bool {
    let of_name = of_table().into_iter().find(|known| known.function.name == domain);
    of_name.and_then(|domain| domain.function.table.as_ref()).is_some_and(|rights| rights.actions.writes())
}

/// Method and canonical path of the routes of these domains that are wanted.
pub(crate) fn routes(wanted: impl Fn(&Domain, &domain::Endpoint) -> bool) -> BTreeSet<String> {
    let of_domain = |domain: &'static Domain| (domain.endpoints)().into_iter().map(move |endpoint| (domain, endpoint));
    let wanted = of_table().into_iter().flat_map(of_domain).filter(|(domain, endpoint)| wanted(domain, endpoint));
    wanted.map(|(_, endpoint)| endpoint.name()).collect()
}

/// Status and body of the answer to a request.
pub(crate) async fn send(router: &Router, method: &'static str, path: &str, body: &Value) -> (u16, Value) {
    Read { method, path: path.to_owned(), body: body.clone() }.answer(router).await
}
