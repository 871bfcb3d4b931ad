//! Entities of another workspace are invisible: neither the response nor the effects of a request
//! disclose them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{Authorizer, Identity, Visibility};
use artifact_store::ArtifactStore;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use entities::workspaces::{WorkspaceChange, Workspaces};
use http::request::Parts;
use key_schema::attributes::LAST_NUMBER;
use key_schema::rows;
use mlflow_api::Workspace;
use serde_json::Value;
use table::{Update, number};
use test_site::route_samples::SampleClient;
use test_site::{TestAuthorizer, TestClient, TestEnvironment, key_of};

use crate::test_server::{ROOT, mounted, with_files};

pub(crate) type Sent = Arc<Mutex<Vec<(Parts, Bytes)>>>;

/// Records all requests to a router.
pub(crate) fn recorded(router: Router, sent: &Sent) -> Router {
    let sent = Arc::clone(sent);
    router.layer(from_fn(move |request: Request, next: Next| {
        let sent = Arc::clone(&sent);
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let copy = {
                let mut copy = http::Request::builder().method(&parts.method).uri(&parts.uri).body(()).unwrap();
                copy.headers_mut().clone_from(&parts.headers);
                copy.into_parts().0
            };
            sent.lock().unwrap().push((copy, body.clone()));
            next.run(Request::from_parts(parts, Body::from(body))).await
        }
    }))
}

pub(crate) async fn answer(router: &Router, parts: &Parts, body: &Bytes) -> (u16, Value) {
    let mut request = http::Request::builder().method(&parts.method).uri(&parts.uri).body(body.clone().into()).unwrap();
    request.headers_mut().clone_from(&parts.headers);
    let answer = TestClient(router.clone()).send(request).await;
    (answer.status, answer.body)
}

/// Returns the shape of a response, independent of ids, times and numbers.
pub(crate) fn shape(body: &Value) -> Value {
    match body {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => 0.into(),
        other => other.clone(),
    }
}

/// Checks whether a call may create an MCP server or a skill, which includes calls that register a
/// version. The responses depend on whether the name is already taken, so the callers of this
/// function do not compare them.
pub(crate) fn creates_named(call: &str) -> bool {
    let of_registry = ["/mcp-servers", "/skills"].into_iter().any(|registry| {
        let is_version = call.contains(&format!("{registry}/")) && call.ends_with("/versions");
        is_version || call.ends_with(registry)
    });
    call.starts_with("POST ") && (of_registry || call.ends_with("/skills/bulk-register"))
}

/// Returns another workspace, which is empty.
fn other() -> Workspace {
    Workspace::parse("elsewhere").unwrap()
}

/// Mounts the functions for a caller with full access to another workspace.
async fn elsewhere(site: &TestEnvironment, directory: &Path) -> Router {
    let identity = Identity { workspace: other(), has_workspaces: true, ..Identity::anonymous() };
    let authorizer: Arc<dyn Authorizer> =
        Arc::new(TestAuthorizer::of_asks(Visibility::Everything, |_| true).knowing(identity));
    mounted(&site.table, ArtifactStore::in_directory(directory), authorizer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_workspace_is_as_if_it_were_not() {
    let [full, empty] = [TestEnvironment::new().await, TestEnvironment::new().await];
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for site in [&full, &empty] {
        let store = tracking::store::Store::new(site.table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        Workspaces::new(site.table.clone()).create(&other(), &WorkspaceChange::default()).await.unwrap();
    }
    // The two sites never assign the same experiment ids.
    let counter = Update::upsert(rows::Config::key(&"experiment_counter".into())).add(LAST_NUMBER, number(1_000));
    empty.table.apply(&counter).await.unwrap();
    let sent = Sent::default();
    let mut walk = SampleClient::new(recorded(with_files(&full.table, directories[0].path()).await, &sent));
    test_site::route_samples::all(&mut walk).await;
    let before = full.dump().await;
    let partitions: BTreeSet<_> = full.items().await.iter().map(|item| key_of(item).pk).collect();

    let routers = [elsewhere(&full, directories[0].path()).await, elsewhere(&empty, directories[1].path()).await];
    let sent = sent.lock().unwrap().iter().map(|(parts, body)| (parts.clone(), body.clone())).collect::<Vec<_>>();
    let mut told = Vec::new();
    for (parts, body) in &sent {
        let call = format!("{} {}", parts.method, parts.uri);
        let is_of = |word: &str| parts.uri.path().contains(word);
        if ["/users/", "/roles/", "/signup", "/workspaces"].into_iter().any(is_of) {
            // Users, roles and workspaces belong to the server, not to a workspace.
            continue;
        }
        if creates_named(&call) {
            // Each workspace has its own names, so the call would succeed in the other workspace,
            // too.
            continue;
        }
        let (status, found) = answer(&routers[0], parts, body).await;
        if is_of("/mlflow-artifacts/") && is_of("/files-of-") {
            // The experiment has an artifact location of its own, so the path does not contain the
            // experiment's id. The caller has full access to its workspace, and may write to this
            // directory.
            continue;
        }
        if is_of("/mlflow-artifacts/") {
            // Files can be written to a path without an experiment, but not to a path of another
            // workspace's experiment.
            assert_eq!(status, 404, "{call}: {found}");
            continue;
        }
        let (expected, other) = answer(&routers[1], parts, body).await;
        let is_same_body = if status == 200 { shape(&found) == shape(&other) } else { found == other };
        let is_same = status == expected && is_same_body;
        // A dataset may refer to experiments that do not exist, but not to those of another
        // workspace. Such a dataset is neither created nor found.
        let makes_dataset = parts.uri.path().ends_with("/datasets/create") || is_of("/add-experiments");
        let is_refused = makes_dataset && status == 404;
        let is_none = is_of("/datasets/search") && found == serde_json::json!({});
        if !is_same && !is_refused && !is_none {
            told.push(format!("{call}: {status} {found}, but on the empty site {expected} {other}"));
        }
    }
    assert_eq!(told, Vec::<String>::new());
    let changes = full.changes(&before).await;
    // Settings of the server, such as the last assigned experiment id, do not belong to a
    // workspace.
    let is_no_ones = |pk: &str| pk == "CONFIG" || pk == "WORKSPACE#elsewhere";
    let in_old = |key: &&String| key.split(' ').next().is_some_and(|pk| !is_no_ones(pk) && partitions.contains(pk));
    let touched: Vec<_> = changes.keys().filter(in_old).collect();
    assert_eq!(touched, Vec::<&String>::new());
}
