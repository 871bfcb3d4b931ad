//! Two versions that serve the same table, a released one and this one, as during a deployment.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_engine::Engine;
use http::header::AUTHORIZATION;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use key_schema::rows;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use permissions::UserAuthorizer;
use table::Table;
use test_site::key_of;
use test_site::route_samples::{SAMPLE_USER, SampleClient};

use super::reads::Asked;
use super::recorded_tables::ACCESS;
use crate::program::{PATIENCE, Program};
use crate::test_server::{ROOT, TABLE};

/// Environment variable with the path of the released program.
const RELEASED: &str = "RELEASED_BIN";
const PASSWORD: &str = "a password of both versions";

/// Client that sends requests to servers in turn.
#[derive(Clone)]
struct Turns {
    client: Client<HttpConnector, Body>,
    /// Two servers of each version: one without workspaces, and one with workspaces.
    addresses: Arc<[[String; 2]]>,
    next: Arc<AtomicUsize>,
}

impl Turns {
    fn between(addresses: &[[String; 2]]) -> Self {
        let addresses = addresses.to_vec().into();
        Self { client: Client::builder(TokioExecutor::new()).build_http(), addresses, next: Arc::default() }
    }

    fn router(&self) -> Router {
        let turns = self.clone();
        Router::new().fallback(move |request: Request| async move { turns.send(request).await })
    }

    async fn send(self, request: Request) -> Response {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len();
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().unwrap();
        // The samples do not name a workspace, but some of them manage workspaces.
        let kind = usize::from(path.path().contains("/mlflow/workspaces"));
        parts.uri = format!("http://{}{path}", self.addresses[turn][kind]).parse().unwrap();
        let credentials = STANDARD.encode(format!("{SAMPLE_USER}:{PASSWORD}"));
        parts.headers.insert(AUTHORIZATION, format!("Basic {credentials}").parse().unwrap());
        // Bodies are sent with their length, like those of stock clients.
        let body = body.collect().await.unwrap().to_bytes();
        let answer = self.client.request(Request::from_parts(parts, Body::from(body))).await.unwrap();
        answer.map(Body::new)
    }
}

/// The servers of one version over a directory, with or without an indexer.
struct Servers {
    _programs: [Program; 2],
    addresses: [String; 2],
}

impl Servers {
    fn start(program: &str, directory: &Path, indexes: bool) -> Self {
        let (data, files) = (directory.join("data"), directory.join("files"));
        let (data, files) = (data.to_str().unwrap(), files.to_str().unwrap());
        let mut arguments = vec!["serve", "--data", data, "--port", "0", "--no-ui", "--auth", "basic"];
        arguments.extend(["--artifact-root", ROOT, "--artifacts-destination", files, "--artifacts-past-users"]);
        arguments.extend(["--run-indexing-interval", "0"]);
        let alone = [&arguments[..], &["--no-indexer"]].concat();
        let first = if indexes { &arguments } else { &alone };
        let of_workspaces = [&alone[..], &["--workspaces"]].concat();
        // The servers are started one after the other: if two processes create a file at the same
        // time, one may fail.
        let [(first, address), (second, another)] = [first, &of_workspaces].map(|arguments| {
            let server = Program::of(program, arguments, &[]);
            let address = server.address();
            (server, address)
        });
        Self { _programs: [first, second], addresses: [address, another] }
    }
}

/// Creates the user who sends the requests.
async fn make_walker(engine: &Engine) {
    let (table, access) = (Table::new(engine.client(), TABLE), Table::new(engine.client(), ACCESS));
    let basic = UserAuthorizer::new(table.clone(), access.clone(), PermissionLevel::NoPermissions);
    let users = auth::store::Store::new(table, access, basic);
    users.user_create(&UserName::new(SAMPLE_USER).unwrap(), PASSWORD.to_owned(), true).await.unwrap();
}

/// Waits until the index has a copy of each run.
async fn wait_for_index(engine: &Engine) {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let keys: Vec<_> = engine.items(TABLE).await.unwrap().iter().map(key_of).collect();
            let runs = keys.iter().filter_map(rows::Run::parse).map(|row| row.run.to_string());
            let copies: BTreeSet<_> =
                keys.iter().filter_map(rows::IndexedCopy::parse).map(|row| row.entity.0).collect();
            if runs.collect::<BTreeSet<_>>().is_subset(&copies) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    waited.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the program of a release, which `tools/released.py` builds"]
async fn two_versions_serve_one_table() {
    let released =
        std::env::var(RELEASED).unwrap_or_else(|_| panic!("set {RELEASED} to the path of a released program"));
    let current = env!("CARGO_BIN_EXE_mlflow-serverless");
    for released_indexes in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        // The released version creates the table.
        let old = Servers::start(&released, directory.path(), released_indexes);
        let new = Servers::start(current, directory.path(), !released_indexes);
        let mut order = [old.addresses.clone(), new.addresses.clone()];
        let engine = Engine::open(&directory.path().join("data")).unwrap();
        make_walker(&engine).await;
        if !released_indexes {
            order.reverse();
        }
        let mut walk = SampleClient::new(Turns::between(&order).router());
        test_site::route_samples::all(&mut walk).await;
        wait_for_index(&engine).await;
        let reads: Vec<_> = walk.reads.into_iter().map(Asked::from).filter(|asked| asked.path != "/signup").collect();
        assert!(reads.len() > 70, "{} requests", reads.len());
        let [one, two] = order.map(|addresses| test_site::TestClient(Turns::between(&[addresses]).router()));
        for asked in reads {
            assert_eq!(asked.send(&one).await, asked.send(&two).await, "{asked:?}");
        }
    }
}
