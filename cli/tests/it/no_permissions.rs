//! Entities that a user has no permission for are indistinguishable from missing ones, and cannot
//! be changed.

use std::collections::BTreeSet;
use std::path::Path;

use artifact_store::ArtifactStore;
use axum::Router;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Environment;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use key_schema::attributes::LAST_NUMBER;
use key_schema::rows;
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{UserName, Workspace};
use table::{Update, number};
use test_site::route_samples::SampleClient;
use test_site::{TestEnvironment, key_of};

use crate::other_workspace::{Sent, answer, creates_named, recorded, shape};
use crate::test_server::{ROOT, TABLE, of_table, with_files};
use crate::users_server::PASSWORD;

const STRANGER: &str = "stranger";

/// Routes that disclose the existence of unreadable entities, as in MLflow: the responses show that
/// a name is taken.
const TELLING: [&str; 4] =
    ["/experiments/get-by-name", "/experiments/create", "/registered-models/create", "/registered-models/rename"];

/// Returns the functions for a user without permissions.
async fn of_a_stranger(site: &TestEnvironment, directory: &Path) -> Router {
    let access = site.table.beside(format!("{TABLE}-access"));
    access.create_access_if_missing().await.unwrap();
    let around = Environment::new(access::AllowAll::shared(), site.table.clone());
    let around = around.with_artifacts(ROOT, ArtifactStore::in_directory(directory));
    let around = around.with_users(site.table.clone(), access.clone(), PermissionLevel::NoPermissions);
    let store = auth::store::Store::new(site.table.clone(), access, around.user_authorizer.clone().unwrap());
    store.user_create(&UserName::new(STRANGER).unwrap(), PASSWORD.to_owned(), false).await.unwrap();
    domain::mount(&of_table(), &[], &around).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_as_if_it_were_not() {
    let [full, empty] = [TestEnvironment::new().await, TestEnvironment::new().await];
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for site in [&full, &empty] {
        let store = tracking::store::Store::new(site.table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
    }
    // The two sites never assign the same experiment ids.
    let counter = Update::upsert(rows::Config::key(&"experiment_counter".into())).add(LAST_NUMBER, number(1_000));
    empty.table.apply(&counter).await.unwrap();
    let sent = Sent::default();
    let mut walk = SampleClient::new(recorded(with_files(&full.table, directories[0].path()).await, &sent));
    test_site::route_samples::all(&mut walk).await;
    let routers =
        [of_a_stranger(&full, directories[0].path()).await, of_a_stranger(&empty, directories[1].path()).await];
    let before = full.dump().await;
    let partitions: BTreeSet<_> = full.items().await.iter().map(|item| key_of(item).pk).collect();

    let credentials: HeaderValue =
        format!("Basic {}", STANDARD.encode(format!("{STRANGER}:{PASSWORD}"))).parse().unwrap();
    let mut sent = std::mem::take(&mut *sent.lock().unwrap());
    let mut told = Vec::new();
    let mut asked = 0;
    for (parts, body) in &mut sent {
        let call = format!("{} {}", parts.method, parts.uri);
        let is_of = |word: &str| call.contains(word);
        // Users, roles and workspaces belong to the server: a user who has signed in can see users,
        // but nothing else. The modules `teams` and `users` test this.
        let is_telling = ["/users/", "/roles/", "/signup", "/workspaces"].into_iter().chain(TELLING).any(is_of);
        if is_telling || creates_named(&call) {
            continue;
        }
        parts.headers.insert(AUTHORIZATION, credentials.clone());
        asked += 1;
        let (status, found) = answer(&routers[0], parts, body).await;
        let (expected, other) = answer(&routers[1], parts, body).await;
        let is_same_body = if status == 200 { shape(&found) == shape(&other) } else { found == other };
        let is_same = status == expected && is_same_body;
        if !is_same {
            let body = String::from_utf8_lossy(body);
            let line = format!("{call}: {status} {found}, but on the empty site {expected} {other}; {body}");
            told.push(line.chars().take(500).collect::<String>());
        }
    }
    assert!(asked > 200, "{asked}");
    assert!(told.is_empty(), "{}", told.join("\n"));
    let changes = full.changes(&before).await;
    // Settings of the server, such as the last assigned experiment id, and the names of the
    // workspace do not belong to a user. The user without permissions has rows of its own.
    let is_no_ones = |pk: &str| ["CONFIG", "WORKSPACE#default", &format!("USER#{STRANGER}")].contains(&pk);
    let in_old = |key: &&String| key.split(' ').next().is_some_and(|pk| !is_no_ones(pk) && partitions.contains(pk));
    let touched: Vec<_> = changes.keys().filter(in_old).collect();
    assert_eq!(touched, Vec::<&String>::new());
}
