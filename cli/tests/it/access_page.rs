//! Checks that `docs/reference/access.md` lists the needs of each route, as passed to the
//! authorizer. `UPDATE_DOCS=1` writes the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use access::{AccessCheck, Authorizer, Guard, Permission, Visibility};
use artifact_store::ArtifactStore;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use domain::EndpointInfo;
use domains::DOMAINS;
use embedded_engine::Engine;
use mlflow_api::Workspace;
use table::Table;
use test_site::TestAuthorizer;
use test_site::route_samples::SampleClient;

use crate::test_server::{ROOT, TABLE, mounted, walker};

const HEAD: &str = "\
# What each route needs

Generated from a walk through all routes by `make docs`; do not edit. Each row is one permission that a request requires: the action, the kind
of entity, and the entity that guards it. A request is refused if the authorizer denies any of them. There are two exceptions: lists leave out
entities that the caller may not read, and responses leave out entities that they would only show as part of another one. Reading an evaluation dataset
requires permission to read one of its experiments. Authorizers that do not read guards are not asked about entities to which a request merely refers: the
logged models of a run's inputs and outputs, and the source run of a logged model. Requests that create or refer to a prompt are authorized as such if it
is known to be one.

Needs that only become known while a request is processed are not listed. If the artifact location of a new experiment is inside the location of another one, the
caller must have permission to change that experiment. The location of a version's files is that of their run or logged model if the caller may read
these, and otherwise the version's own directory. Sending a trace that already exists changes it if the caller may change it, and otherwise only adds to it.

Open routes respond to everyone. Routes for signed-in users respond to every authenticated user: GraphQL authorizes each endpoint that a query calls, and
requests of MLflow's page for features that are not supported have constant responses. Most routes are served under `/ajax-api/…` as well as under `/api/…`.

| method | path | action | kind | guarded by |
|---|---|---|---|---|
";

pub(crate) fn all_rows() -> Vec<EndpointInfo> {
    DOMAINS.iter().flat_map(|domain| (domain.endpoints)()).collect()
}

/// Splits a name such as `LoggedModel` into lower-case words.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn line(ask: &AccessCheck) -> Option<String> {
    let guard = match ask.guard {
        Guard::Workspace(_) => "workspace",
        Guard::Experiment(_) => "experiment",
        Guard::Scorer(..) => "scorer",
        Guard::RegisteredModel(_) => "registered model",
        Guard::McpServer(_) => "MCP server",
        Guard::Skill(_) => "skill",
        Guard::EvaluationDataset(_) => "evaluation dataset",
        Guard::User(_) => "user",
        Guard::Absent(_) => return None,
    };
    let [action, kind] = [format!("{:?}", ask.action), format!("{:?}", ask.kind)].map(|name| words(&name));
    Some(format!("{action} | {kind} | {guard}"))
}

/// The calls by method and path, each with the requests for authorization that it made.
type Asked = Vec<((String, String), Vec<AccessCheck>)>;

/// Returns the number of literal segments in a route's path if the path matches the route.
fn literal_parts(row: &str, path: &str) -> Option<usize> {
    let (mut row, mut path) = (row.split('/'), path.split('/'));
    let mut literal = 0;
    loop {
        match (row.next(), path.next()) {
            (None, None) => return Some(literal),
            (Some(part), Some(_)) if part.starts_with("{*") => return Some(literal),
            (Some(part), Some(_)) if part.starts_with('{') => {}
            (Some(part), Some(found)) if part.starts_with("@{") && found.starts_with('@') => literal += 1,
            (Some(part), Some(found)) if part == found => literal += 1,
            _ => return None,
        }
    }
}

/// Returns the row that a request is routed to. Of several rows that match its path, it is the one
/// with the most literal segments.
pub(crate) fn row_of<'a>(rows: &'a [EndpointInfo], (method, path): &(String, String)) -> &'a EndpointInfo {
    let of_method = rows.iter().filter(|row| row.method == method);
    let found = of_method.filter_map(|row| {
        let literal = row.paths.iter().filter_map(|own| literal_parts(own, path)).max()?;
        Some((literal, row))
    });
    found.max_by_key(|(literal, _)| *literal).unwrap_or_else(|| panic!("no row has {path}")).1
}

/// Returns the requests for authorization of each call in the walk.
async fn asked() -> Asked {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    tracking::store::Store::new(table.clone(), ROOT).experiment_create_default(&Workspace::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let asks = Arc::<Mutex<Vec<AccessCheck>>>::default();
    let all = Arc::<Mutex<Asked>>::default();
    let wanted = Arc::clone(&asks);
    let admit = TestAuthorizer::of_asks(Visibility::Everything, move |ask| {
        wanted.lock().unwrap().push(ask.clone());
        true
    });
    let admit: Arc<dyn Authorizer> = Arc::new(admit.looking().knowing(walker()).further(|_| true));
    let (of_call, found) = (Arc::clone(&asks), Arc::clone(&all));
    let router = mounted(&table, ArtifactStore::in_directory(directory.path()), admit).await.layer(from_fn(
        move |request: Request, next: Next| {
            let (asks, found) = (Arc::clone(&of_call), Arc::clone(&found));
            async move {
                let route = (request.method().to_string(), request.uri().path().to_owned());
                asks.lock().unwrap().clear();
                let answer = next.run(request).await;
                let asked = asks.lock().unwrap().clone();
                found.lock().unwrap().push((route, asked));
                answer
            }
        },
    ));
    let mut walk = SampleClient::new(router);
    test_site::route_samples::all(&mut walk).await;
    let all = all.lock().unwrap();
    all.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_what_each_route_needs() {
    let rows = all_rows();
    let mut lines_of: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    let calls = asked().await;
    for (request, asks) in &calls {
        let row = row_of(&rows, request);
        lines_of.entry((row.method, &row.paths[0])).or_default().extend(asks.iter().filter_map(line));
    }
    let mut text = String::from(HEAD);
    for row in &rows {
        let (method, path) = (row.method, row.paths[0].replace("{*", "{"));
        let lines: BTreeSet<String> = match row.permission {
            Permission::Open => BTreeSet::from(["open | |".to_owned()]),
            Permission::SignedIn => BTreeSet::from(["signed in | |".to_owned()]),
            _ => lines_of.remove(&(method, row.paths[0].as_str())).unwrap_or_default(),
        };
        assert!(!lines.is_empty(), "no authorization was requested for {method} {path}");
        for line in lines {
            writeln!(text, "| {method} | `{path}` | {line} |").unwrap();
        }
    }
    check("access.md", &text);
}

pub(crate) fn check(page: &str, expected: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "docs/reference/{page} is out of date; run `make docs`");
}
