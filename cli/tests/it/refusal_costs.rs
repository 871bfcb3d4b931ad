//! The cost of refusing requests that refer to many entities.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use access::{AllowedActions, Restriction};
use artifact_store::ArtifactStore;
use auth::store::NewToken;
use axum::Router;
use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Environment;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Uri};
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{UserName, Workspace};
use serde_json::{Value, json};
use table::UsageMeter;
use test_site::TestEnvironment;
use test_site::route_samples::{SAMPLE_USER, SampleClient};

use crate::other_workspace::{Sent, answer, recorded};
use crate::test_server::{ROOT, of_table, with_files};
use crate::users_server::{PASSWORD, Server};

const STRANGER: &str = "stranger";
/// Maximum read units of a refusal. It covers 100 entities, the caller's grants for them, and the
/// caller's own item.
const MAX_REFUSAL: f64 = 210.0;
/// Maximum read units of a refusal that only depends on the credentials: the user and the token.
const MAX_REFUSAL_BY_TOKEN: f64 = 2.0;
/// Lengths of each list in a request: short, a page, the maximum that a request may have, and
/// longer.
const SIZES: [u64; 5] = [20, 100, 1_000, 10_000, 100_000];
/// Maximum length of a request's path and query, in bytes.
const LONGEST_URI: usize = 65_000;

/// Mounts the functions. Also returns the credentials of a user without grants, and of an
/// administrator's token that may only send traces.
async fn strangers(site: &TestEnvironment, directory: &Path) -> (Router, [HeaderValue; 2]) {
    let access = site.table.beside(format!("{}-access", test_site::TABLE));
    let around = Environment::new(access::AllowAll::shared(), site.table.clone());
    let around = around.with_artifacts(ROOT, ArtifactStore::in_directory(directory));
    let around = around.with_users(site.table.clone(), access.clone(), PermissionLevel::NoPermissions);
    let store = auth::store::Store::new(site.table.clone(), access, around.user_authorizer.clone().unwrap());
    store.user_create(&UserName::new(STRANGER).unwrap(), PASSWORD.to_owned(), false).await.unwrap();
    let restriction = Restriction { experiment: None, actions: AllowedActions::Ingest };
    let new = NewToken { name: "t".to_owned(), restriction, days: Some(1) };
    let (token, _) = store.token_create(&UserName::new(SAMPLE_USER).unwrap(), new).await.unwrap();
    let basic = format!("Basic {}", STANDARD.encode(format!("{STRANGER}:{PASSWORD}")));
    let bearer = format!("Bearer {}", token.token());
    let router = domain::mount(&of_table(), &[], &around).await.unwrap();
    (router, [basic, bearer].map(|text| text.parse().unwrap()))
}

/// Returns the numbers of the ids in a list of this length. They differ for every length, because
/// items that were read for another length may still be cached.
fn ids(size: u64) -> Range<u64> {
    size..2 * size
}

/// Returns another id in the format of this one.
fn another(id: &str, number: u64) -> String {
    // The generated ids are spread like random ones.
    let random = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match id.split_once('-') {
        _ if id.parse::<u64>().is_ok() => (number + 1).to_string(),
        _ if is_hex(id) => format!("{random:032x}"),
        Some((kind, rest)) if is_hex(rest) => format!("{kind}-{random:032x}"),
        _ => format!("{id}-{number}"),
    }
}

/// Copies an element of a list, replacing each id in it by another one.
fn other_element(element: &Value, number: u64) -> Value {
    match element {
        Value::String(id) => another(id, number).into(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                // Some samples have long texts, which are shortened.
                let is_text = value.is_string() && !name.ends_with("id");
                (name.clone(), if is_text { "text".into() } else { other_element(value, number) })
            };
            fields.iter().map(field).collect()
        }
        Value::Array(elements) => elements.iter().map(|element| other_element(element, number)).collect(),
        other => other.clone(),
    }
}

/// Collects the JSON pointers to all non-empty lists in a body.
fn lists(body: &Value, pointer: &str, found: &mut Vec<String>) {
    match body {
        Value::Array(elements) if !elements.is_empty() => found.push(pointer.to_owned()),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| lists(value, &format!("{pointer}/{name}"), found));
        }
        _ => {}
    }
}

/// For each list in a body, returns its JSON pointer, and the body with the list extended to this
/// length.
fn lengthened_bodies(body: &Bytes, size: u64) -> impl Iterator<Item = (String, Bytes)> {
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let mut found = Vec::new();
    lists(&body, "", &mut found);
    found.into_iter().map(move |pointer| {
        let mut body = body.clone();
        let list = body.pointer_mut(&pointer).unwrap().as_array_mut().unwrap();
        let element = list.pop().unwrap();
        *list = ids(size).map(|number| other_element(&element, number)).collect();
        (pointer, body.to_string().into())
    })
}

/// For each argument of a query, returns its name, and the query with the argument repeated this
/// many times.
fn lengthened_queries(uri: &Uri, size: u64) -> Vec<(String, Uri)> {
    let query = uri.query().unwrap_or_default();
    let names: BTreeSet<_> = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name).collect();
    let lengthened = names.into_iter().filter_map(|name| {
        let (of_name, others): (Vec<_>, Vec<_>) =
            query.split('&').partition(|pair| pair.split_once('=').is_some_and(|(own, _)| own == name));
        let (_, id) = of_name.first()?.split_once('=')?;
        let mut uri = format!("{}?{}", uri.path(), others.join("&"));
        for number in ids(size) {
            let argument = format!("&{name}={}", another(id, number));
            if uri.len() + argument.len() > LONGEST_URI {
                break;
            }
            uri.push_str(&argument);
        }
        Some((name.to_owned(), uri.parse().unwrap()))
    });
    lengthened.collect()
}

/// Returns copies of a recorded request, in each of which one list has this length.
fn lengthened<'a>(parts: &'a Parts, body: &'a Bytes, size: u64) -> impl Iterator<Item = (String, Parts, Bytes)> + 'a {
    let bodies = lengthened_bodies(body, size).map(|(list, body)| (list, parts.uri.clone(), body));
    let queries = lengthened_queries(&parts.uri, size).into_iter().map(|(list, uri)| (list, uri, body.clone()));
    bodies.chain(queries).map(|(list, uri, body)| {
        let mut parts = parts.clone();
        let call = format!("{} {} {list}", parts.method, parts.uri.path());
        parts.uri = uri;
        (call, parts, body)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_many_entities_is_refused_after_few_reads() {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let sent = Sent::default();
    let mut walk = SampleClient::new(recorded(with_files(&site.table, directory.path()).await, &sent));
    test_site::route_samples::all(&mut walk).await;
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    let (router, [stranger, token]) = strangers(&site, directory.path()).await;
    let mut costly = Vec::new();
    let mut lists = BTreeSet::new();
    for ((parts, body), size) in sent.iter().flat_map(|sent| SIZES.map(|size| (sent, size))) {
        for (list, mut parts, body) in lengthened(parts, body, size) {
            // Some paths contain ids, so the same list may occur several times.
            if !lists.insert((list.clone(), size)) {
                continue;
            }
            let call = format!("{list} of {size}");
            for (credentials, most) in [(&stranger, MAX_REFUSAL), (&token, MAX_REFUSAL_BY_TOKEN)] {
                parts.headers.insert(AUTHORIZATION, credentials.clone());
                let meter = UsageMeter::default();
                let (status, found) = meter.counting(answer(&router, &parts, &body)).await;
                let used = meter.take();
                // Requests that the caller may make, such as creating an experiment, are not
                // refusals, so their cost is not limited here.
                let is_refused =
                    status >= 400 || found == json!({}) || *credentials == stranger && call.contains("search");
                if is_refused && used.read_units > most {
                    costly.push(format!("{call}: {status}, {} units, {} requests", used.read_units, used.requests));
                }
            }
        }
    }
    assert!(lists.len() > 40 * SIZES.len(), "{lists:?}");
    assert!(costly.is_empty(), "{}", costly.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entities_are_named_by_a_user_who_may_touch_them() {
    const MINE: usize = 230;
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let ann = server.user("ann").await;
    let mut mine = Vec::new();
    for number in 0..MINE {
        mine.push(ann.experiment(&format!("e{number}")).await);
    }
    for experiment in [&mine[0], &mine[MINE - 1]] {
        ann.v2("POST", "runs/create", json!({ "experiment_id": experiment })).await.ok();
    }
    let foreign = server.admin.experiment("foreign").await;
    server.admin.v2("POST", "runs/create", json!({ "experiment_id": foreign })).await.ok();
    let all: Vec<_> =
        mine.iter().cloned().chain([foreign.clone()]).chain((5_000..14_000).map(|id| id.to_string())).collect();
    let found = ann.v2("POST", "runs/search", json!({ "experiment_ids": all })).await.ok();
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    ann.v3("POST", "datasets/create", json!({ "name": "d", "experiment_ids": mine })).await.ok();
    let mut more = mine.clone();
    more.insert(MINE - 1, foreign);
    let refused = ann.v3("POST", "datasets/create", json!({ "name": "f", "experiment_ids": more })).await;
    assert_eq!(refused.status, 403);
    let ids: Vec<_> = (1..=10_001).map(|id| id.to_string()).collect();
    let refused = ann.v3("POST", "datasets/create", json!({ "name": "g", "experiment_ids": ids })).await;
    let message = "A request names at most 10000 entities. Send several requests.";
    assert_eq!((refused.status, &refused.body["message"]), (400, &json!(message)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_dataset_of_many_experiments_is_refused_after_few_reads() {
    let server = Server::new(PermissionLevel::NoPermissions).await;
    let stranger = server.user(STRANGER).await;
    let experiments: Vec<_> = (1_000..3_000).map(|id| id.to_string()).collect();
    let new = json!({ "name": "d", "experiment_ids": experiments });
    let dataset = server.admin.v3("POST", "datasets/create", new).await.ok();
    let path = format!("datasets/{}", dataset["dataset"]["dataset_id"].as_str().unwrap());
    let meter = UsageMeter::default();
    let refused = meter.counting(stranger.v3("GET", &path, json!({}))).await;
    let used = meter.take().read_units;
    // The dataset itself is an item of about 50 KB.
    assert_eq!((refused.status, used < MAX_REFUSAL + 20.0), (403, true), "{used} units");
    server.admin.v3("GET", &path, json!({})).await.ok();
}
