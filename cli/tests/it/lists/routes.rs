//! Checks that every route that reads is one of the lists, or is known to only return data about
//! entities that the request identifies. New routes fail this test until they are added to either
//! of the two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use access::{Action, Permission};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use embedded_engine::Engine;
use mlflow_api::Workspace;
use serde_json::Value;
use table::Table;
use test_site::route_samples::SampleClient;

use super::entity::arrays_of_entities;
use super::list_requests;
use super::test_servers::Ids;
use crate::access_page::{all_rows, row_of};
use crate::test_server::{ROOT, TABLE, routes, with_files};

/// Reason for a route that reads a single entity. The lists are compared with such routes.
const SINGLE: &str = "a single read";
/// Reason for a route that returns data of one entity, which the request identifies by its id.
const PART: &str = "a part of an entity that the request names";
/// Reason for a route that refuses a request unless the caller may read all entities to which it
/// refers.
const NAMED: &str = "about entities that the request names, and refused unless all may be read";
/// Reason for a route that returns the caller's own data, or data that does not belong to any user.
const OWN: &str = "the caller's own data, or data that belongs to no user";
/// Reason for a route that only administrators may use.
const ADMINISTRATORS: &str = "for administrators, who may read everything";

/// Routes that read and are not lists, with the reason.
const OTHERS: &[(&str, &str)] = &[
    ("GET /api/2.0/mlflow/experiments/get", SINGLE),
    ("GET /api/2.0/mlflow/runs/get", SINGLE),
    ("GET /api/2.0/mlflow/logged-models/{model_id}", SINGLE),
    ("GET /api/3.0/mlflow/traces/{trace_id}/assessments/{assessment_id}", SINGLE),
    ("GET /api/2.0/mlflow/model-versions/get", SINGLE),
    ("GET /api/3.0/mlflow/scorers/get", SINGLE),
    ("GET /api/3.0/mlflow/datasets/{dataset_id}", SINGLE),
    ("GET /api/3.0/mlflow/workspaces/{workspace_name}", SINGLE),
    ("GET /api/3.0/mlflow/roles/get", SINGLE),
    ("GET /api/2.0/mlflow/users/get", SINGLE),
    ("GET /api/2.0/mlflow/traces/{request_id}/info", SINGLE),
    //
    ("GET /api/2.0/mlflow/metrics/get-history", PART),
    ("GET /api/2.0/mlflow/logged-models/{model_id}/artifacts/directories", PART),
    ("GET /ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files", PART),
    ("GET /api/3.0/mlflow/datasets/{dataset_id}/records", PART),
    ("GET /ajax-api/2.0/mlflow/get-trace-artifact", PART),
    ("GET /ajax-api/3.0/mlflow/get-trace-artifact", PART),
    ("GET /api/2.0/mlflow/model-versions/get-download-uri", PART),
    ("GET /api/3.0/mlflow/label-schemas/get", PART),
    ("GET /api/3.0/mlflow/label-schemas/get-by-name", PART),
    ("GET /api/3.0/mlflow/label-schemas/list", PART),
    ("GET /api/3.0/mlflow/review-queues/get", PART),
    ("GET /api/3.0/mlflow/review-queues/get-by-name", PART),
    ("GET /api/3.0/mlflow/review-queues/items/list", PART),
    ("GET /api/3.0/mlflow/issues/{issue_id}", PART),
    ("POST /api/3.0/mlflow/issues/search", PART),
    ("GET /model-versions/get-artifact", PART),
    ("GET /api/2.0/mlflow-artifacts/artifacts/{*artifact_path}", PART),
    ("GET /api/2.0/mlflow-artifacts/presigned/{*artifact_path}", PART),
    ("GET /api/2.0/mlflow/artifacts/list", PART),
    ("GET /get-artifact", PART),
    ("POST /api/2.0/mlflow/artifacts/presigned-download-url", PART),
    ("GET /api/3.0/mlflow/mcp-servers/{name}/versions/{version}", SINGLE),
    ("GET /api/3.0/mlflow/mcp-servers/{name}/aliases/{*alias}", NAMED),
    ("GET /api/3.0/mlflow/mcp-servers/{name}/endpoints/{endpoint_id}", PART),
    ("GET /api/3.0/mlflow/skills/{name}", SINGLE),
    ("GET /api/3.0/mlflow/skills/@{organization}/{name}", SINGLE),
    ("GET /api/3.0/mlflow/skills/{name}/versions/{version}", SINGLE),
    ("GET /api/3.0/mlflow/skills/@{organization}/{name}/versions/{version}", SINGLE),
    ("GET /api/3.0/mlflow/skills/{name}/aliases/{alias}", NAMED),
    ("GET /api/3.0/mlflow/skills/@{organization}/{name}/aliases/{alias}", NAMED),
    ("GET /api/3.0/mlflow/users/permissions/list", PART),
    ("GET /api/3.0/mlflow/users/permissions/get", PART),
    ("GET /api/3.0/mlflow/users/roles/list", PART),
    //
    ("GET /api/2.0/mlflow/webhooks", ADMINISTRATORS),
    ("GET /api/2.0/mlflow/webhooks/{webhook_id}", ADMINISTRATORS),
    //
    ("GET /ajax-api/2.0/mlflow/metrics/get-history-bulk", NAMED),
    ("GET /api/2.0/mlflow/metrics/get-history-bulk-interval", NAMED),
    ("POST /ajax-api/2.0/mlflow/experiments/search-datasets", NAMED),
    ("GET /api/3.0/mlflow/scorers/online-configs", NAMED),
    ("POST /api/3.0/mlflow/traces/metrics", NAMED),
    ("POST /api/3.0/mlflow/traces/calculate-filter-correlation", NAMED),
    //
    ("GET /ajax-api/3.0/mlflow/ui-telemetry", OWN),
    ("POST /ajax-api/3.0/mlflow/ui-telemetry", OWN),
    ("GET /version", OWN),
    ("GET /tokens", OWN),
    ("POST /tokens", OWN),
    ("GET /login", OWN),
    ("POST /login", OWN),
    ("GET /api/2.0/mlflow/users/current", OWN),
    ("GET /api/3.0/mlflow/users/current/permissions", OWN),
    //
    ("POST /api/3.0/mlflow/users/permissions/grant", "changes a grant for something that the caller may read"),
    ("POST /api/3.0/mlflow/users/permissions/revoke", "changes a grant for something that the caller may read"),
    ("GET /api/2.0/mlflow/users/list", "names of users are visible to all users, who may grant them access"),
    (
        "GET /api/3.0/mlflow/review-queues/list",
        "queues of the experiment that the request names: `tests/users/test_reviews.py`",
    ),
];

/// GraphQL fields that lead to entities and are not lists, with the reason.
const OTHER_FIELDS: &[(&str, &str)] = &[
    ("Query.mlflowGetMetricHistoryBulkInterval", NAMED),
    ("Query.mlflowListArtifacts", PART),
    ("Mutation.mlflowSearchDatasets", NAMED),
    ("Query.test", OWN),
    ("Mutation.testMutation", OWN),
];

/// Fields with arrays of references to other entities, or of parts of an entity. `denied_fields.rs`
/// checks that references to denied entities are left out.
const PARTS: &[&str] = &[
    "model_inputs",
    "model_outputs",
    "modelInputs",
    "modelOutputs",
    "metrics",
    "model_metrics",
    "spans",
    "aliases",
    "access_endpoints",
    "permissions",
    "schema_ids",
];

/// Other arrays of entities in responses of routes that are not lists, with the reason.
const ARRAYS: &[(&str, &str, &str)] = &[
    ("GET /api/2.0/mlflow/users/list", "users", "above"),
    ("GET /api/3.0/mlflow/roles/users/list", "assignments", "above"),
    ("GET /api/3.0/mlflow/scorers/online-configs", "configs", "settings of the experiments that the request names"),
    ("GET /api/3.0/mlflow/label-schemas/list", "label_schemas", "settings of the experiment that the request names"),
    ("GET /api/3.0/mlflow/review-queues/list", "review_queues", "above"),
    ("POST /api/3.0/mlflow/issues/search", "issues", "parts of the experiment that the request names"),
    ("POST /ajax-api/2.0/mlflow/experiments/search-datasets", "dataset_summaries", "entities without a single read"),
    (
        "POST /api/2.0/mlflow/registered-models/rename",
        "latest_versions",
        "left out if the caller is denied them: `denied_fields.rs`",
    ),
    ("POST /api/3.0/mlflow/datasets/create", "experiment_ids", "the experiments in the request"),
    ("POST /api/3.0/mlflow/skills/bulk-register", "skill_versions", "versions of skills that the caller may change"),
];

/// Returns the routes of lists, including the field for GraphQL.
fn listed_routes() -> BTreeSet<String> {
    let names = ["e1", "e2", "gone", "r1", "r2", "l1", "l2", "t1", "t2", "d1", "d2", "both", "role"];
    let ids: Ids = names.map(|name| (name.to_owned(), name.to_owned())).into();
    let lists = list_requests::lists("default", &ids, "foreign").into_iter().chain([list_requests::of_workspaces()]);
    lists.map(|list| list.route.to_owned()).collect()
}

/// Returns the method and path of a list's route.
fn without_field(route: &str) -> String {
    route.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_route_that_reads_is_a_list_or_known_to_be_none() {
    let lists: BTreeSet<_> = listed_routes().iter().map(|route| without_field(route)).collect();
    let others: BTreeMap<_, _> = OTHERS.iter().map(|(route, reason)| ((*route).to_owned(), *reason)).collect();
    let reads = |permission: Permission| {
        let writes = permission.action().is_some_and(|(action, _)| action.writes());
        permission != Permission::Open && !writes
    };
    let reading = routes(|_, endpoint| reads(endpoint.permission));
    let known: BTreeSet<_> = lists.iter().cloned().chain(others.keys().cloned()).collect();
    let unknown: Vec<_> = reading.difference(&known).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "add these routes to the lists in `list_requests.rs`, or to `OTHERS`");
    let gone: Vec<_> = known.difference(&reading).collect();
    assert_eq!(gone, Vec::<&String>::new(), "routes that do not exist");
    let both: Vec<_> = lists.iter().filter(|route| others.contains_key(*route)).collect();
    assert_eq!(both, Vec::<&String>::new(), "routes that are in both lists");
    let is_list = |permission: Permission| permission.action().is_some_and(|(action, _)| action == Action::List);
    let of_permission = routes(|_, endpoint| is_list(endpoint.permission));
    let missing: Vec<_> = of_permission.difference(&lists).collect();
    assert_eq!(missing, Vec::<&String>::new(), "routes with the action `List` that are missing from the lists");
}

/// Returns the fields of all types in the schema, as `Type.field`, each with the name of the
/// field's type.
fn fields(schema: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let text: String =
        schema.lines().filter(|line| !line.trim_start().starts_with(['#', '"'])).collect::<Vec<_>>().join("\n");
    for block in text.split("\ntype ").skip(1) {
        let (name, rest) = block.split_once('{').unwrap();
        let mut depth = 0_i32;
        let mut word = String::new();
        // Arguments are enclosed in parentheses.
        for letter in rest.split('}').next().unwrap().chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 => word.push(letter),
                _ => {}
            }
        }
        for field in word.replace(',', "\n").lines().filter_map(|line| line.split_once(':')) {
            let kind = field.1.trim().trim_matches(['[', ']', '!']).to_owned();
            fields.push((format!("{}.{}", name.trim(), field.0.trim()), kind));
        }
    }
    fields
}

#[test]
fn every_field_of_graphql_that_leads_to_entities_is_a_list_or_known_to_be_none() {
    let all = fields(include_str!("../../../../functions/graphql/src/schema.graphql"));
    let is_root = |field: &str| field.starts_with("Query.") || field.starts_with("Mutation.");
    let is_entity = |kind: &str| ["MlflowExperiment", "MlflowRunExtension", "MlflowModelVersion"].contains(&kind);
    // Fields of responses are covered by the root fields that return them.
    let leads = |(field, kind): &&(String, String)| is_root(field) || (is_entity(kind) && !field.contains("Response."));
    let leading: BTreeSet<_> = all.iter().filter(leads).map(|(field, _)| field.clone()).collect();
    let lists = listed_routes();
    let lists = lists.iter().filter_map(|route| route.split(' ').nth(2)).map(str::to_owned);
    let known: BTreeSet<_> = lists.chain(OTHER_FIELDS.iter().map(|(field, _)| (*field).to_owned())).collect();
    assert_eq!(leading, known, "add new fields to the lists in `list_requests.rs`, or to `OTHER_FIELDS`");
}

/// Checks that responses with several entities only come from lists, so that the reasons above are
/// correct for the other routes.
#[tokio::test(flavor = "multi_thread")]
async fn answers_with_several_entities_are_those_of_lists() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let answers = Arc::new(Mutex::new(Vec::<((String, String), Value)>::new()));
    let kept = Arc::clone(&answers);
    let router = with_files(&table, directory.path()).await.layer(from_fn(move |request: Request, next: Next| {
        let kept = Arc::clone(&kept);
        async move {
            let called = (request.method().to_string(), request.uri().path().to_owned());
            let (parts, body) = next.run(request).await.into_parts();
            let bytes = to_bytes(body, usize::MAX).await.unwrap();
            kept.lock().unwrap().push((called, serde_json::from_slice(&bytes).unwrap_or_default()));
            axum::response::Response::from_parts(parts, Body::from(bytes))
        }
    }));
    test_site::route_samples::all(&mut SampleClient::new(router)).await;
    let lists: BTreeSet<_> = listed_routes().iter().map(|route| without_field(route)).collect();
    let rows = all_rows();
    let mut found = BTreeSet::new();
    for (called, answer) in answers.lock().unwrap().iter() {
        let route = row_of(&rows, called).name();
        let arrays = arrays_of_entities(answer).into_iter().filter(|field| !PARTS.contains(&field.as_str()));
        found.extend(arrays.filter(|_| !lists.contains(&route)).map(|field| (route.clone(), field)));
    }
    let known = ARRAYS.iter().map(|(route, field, _)| ((*route).to_owned(), (*field).to_owned()));
    assert_eq!(found, known.collect(), "responses with several entities that are not compared to single reads");
}
