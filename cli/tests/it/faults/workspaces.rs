//! Deletion of a workspace, with a fault at each request: repeating the deletion leads to the same
//! state as an undisturbed one.

use std::collections::BTreeMap;
use std::time::Duration;

use access::WorkspaceAuthorizer;
use domain::Environment;
use entities::workspaces::{WorkspaceChange, WorkspaceDeletionMode, Workspaces};
use http::Request;
use mlflow_api::{ErrorCode, Workspace};
use serde_json::{Value, json};
use table::Table;
use test_site::{BACKGROUND_FAULTS, ROOT, TestClient, TestEnvironment, everybody, tried};

use crate::faults::packing::timed;

const TEAM: &str = "team-a";

fn team() -> Workspace {
    Workspace::parse(TEAM).unwrap()
}

/// Returns the functions of a server with workspaces.
pub(crate) async fn api(table: &Table) -> TestClient {
    let around = Environment::new(everybody(), table.clone());
    let around = Environment { artifact_root: ROOT.to_owned(), ..around.with_workspaces() };
    assert!(WorkspaceAuthorizer::wrap(everybody()).has_workspaces());
    let domains = [&tracking::DOMAIN, &registry::DOMAIN, &evaluation::DOMAIN];
    TestClient(domain::mount(&domains, &[], &around).await.unwrap())
}

async fn post(api: &TestClient, workspace: &str, path: &str, body: Value) -> Value {
    let request = Request::builder().method("POST").uri(format!("/api/{path}"));
    let request = request.header("content-type", "application/json").header("x-mlflow-workspace", workspace);
    api.send(request.body(body.to_string().into()).unwrap()).await.ok()
}

/// Fills a workspace with one entity of each kind. All have `called` in their names.
async fn fill(api: &TestClient, workspace: &str, called: &str) {
    let v2 = |path: &str| format!("2.0/mlflow/{path}");
    let new = json!({ "name": called });
    let experiment = post(api, workspace, &v2("experiments/create"), new.clone()).await["experiment_id"].clone();
    post(api, workspace, &v2("runs/create"), json!({ "experiment_id": experiment })).await;
    let scorer = json!({ "experiment_id": experiment, "name": called, "serialized_scorer": "{}" });
    post(api, workspace, "3.0/mlflow/scorers/register", scorer).await;
    let dataset = json!({ "name": called, "experiment_ids": [experiment] });
    post(api, workspace, "3.0/mlflow/datasets/create", dataset).await;
    post(api, workspace, &v2("registered-models/create"), new).await;
    let version = json!({ "name": called, "source": "s3://elsewhere/x", "run_id": "r" });
    post(api, workspace, &v2("model-versions/create"), version).await;
    let alias = json!({ "name": called, "alias": "best", "version": "1" });
    post(api, workspace, &v2("registered-models/alias"), alias).await;
    // A renamed model, whose rows are stored under a different name.
    let renamed = json!({ "name": called, "new_name": format!("{called}-renamed") });
    post(api, workspace, &v2("registered-models/rename"), renamed).await;
    let prompt =
        json!({ "name": format!("{called}-prompt"), "tags": [{ "key": "mlflow.prompt.is_prompt", "value": "true" }] });
    post(api, workspace, &v2("registered-models/create"), prompt).await;
}

async fn ground(is_filled: bool) -> TestEnvironment {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    Workspaces::new(site.table.clone()).create(&team(), &WorkspaceChange::default()).await.unwrap();
    let api = api(&site.table).await;
    fill(&api, "default", "ours").await;
    if is_filled {
        fill(&api, TEAM, "theirs").await;
        fill(&api, TEAM, "theirs-too").await;
    }
    site
}

async fn delete(table: &Table, mode: WorkspaceDeletionMode) -> mlflow_api::Result<()> {
    let workspaces = Workspaces::new(table.clone());
    let begun = workspaces.begin_deletion(&team(), mode, Duration::ZERO).await?;
    workspaces.finish_deletion(&begun).await
}

/// Returns the number of rows that list an entity in any workspace.
fn listed(items: &BTreeMap<String, Value>) -> usize {
    let rows = [" EXPNAME#", " RMNAME#", " EDS#", " SCORERS#"];
    items.keys().filter(|key| key.starts_with("WORKSPACE#") && rows.iter().any(|row| key.contains(row))).count()
}

async fn all_items(site: &TestEnvironment) -> BTreeMap<String, Value> {
    site.dump().await.into_iter().collect()
}

#[test]
fn a_deletion_of_a_workspace_survives_a_fault_at_each_of_its_requests() {
    timed(deletions());
}

async fn deletions() {
    for (place, mode) in (0..).zip(WorkspaceDeletionMode::ALL) {
        let site = ground(mode != WorkspaceDeletionMode::Restrict).await;
        let before = listed(&all_items(&site).await);
        let clean = site.copy();
        clean.faults.keep_order();
        delete(&clean.faulty(), mode).await.unwrap();
        let after = all_items(&clean).await;
        assert_eq!(listed(&after), before, "{mode:?}: the number of entities is unchanged");
        let is_of_team = |key: &&String| key.starts_with("WORKSPACE#team-a ") || *key == "WORKSPACES WS#team-a";
        assert_eq!(after.keys().filter(is_of_team).collect::<Vec<_>>(), Vec::<&String>::new(), "{mode:?}");
        let says_team = after.values().filter(|item| item["workspace"]["S"] == TEAM).count();
        assert_eq!(says_team, 0, "{mode:?}");
        let requests = clean.faults.order();
        for (nth, operation) in (1..).zip(&requests) {
            for (trouble, calls) in tried(place + nth, operation, &BACKGROUND_FAULTS) {
                let course = format!("{mode:?}: {trouble:?} at {nth} for {calls}");
                let copy = site.copy();
                copy.faults.trouble_at(trouble, nth, calls);
                let outcome = delete(&copy.impatient(), mode).await;
                copy.faults.work_again();
                assert_eq!(listed(&all_items(&copy).await), before, "{course}: no entity is lost or listed twice");
                if outcome.is_err() {
                    match delete(&copy.table, mode).await {
                        // The deletion had succeeded, and only its response was lost.
                        Err(error) if error.code == ErrorCode::ResourceDoesNotExist => {}
                        again => again.unwrap_or_else(|error| panic!("{course}: {error:?}")),
                    }
                }
                assert!(all_items(&copy).await == after, "{course}");
            }
        }
    }
}

/// The slower of two concurrent deletions of a workspace finishes after a new workspace was created
/// under the same name.
#[test]
fn a_late_deletion_leaves_a_new_workspace_alone() {
    timed(async {
        let site = ground(true).await;
        let workspaces = Workspaces::new(site.table.clone());
        let mode = WorkspaceDeletionMode::SetDefault;
        let late = workspaces.begin_deletion(&team(), mode, Duration::ZERO).await.unwrap();
        delete(&site.table, mode).await.unwrap();
        workspaces.create(&team(), &WorkspaceChange::default()).await.unwrap();
        fill(&api(&site.table).await, TEAM, "new").await;
        let before = all_items(&site).await;
        workspaces.finish_deletion(&late).await.unwrap();
        assert!(all_items(&site).await == before);
    });
}

#[test]
fn what_a_workspace_had_is_found_in_the_default_one_or_removed() {
    timed(async {
        let site = ground(true).await;
        let moved = site.copy();
        delete(&moved.table, WorkspaceDeletionMode::SetDefault).await.unwrap();
        let found = |site: &TestEnvironment, workspace: &'static str| {
            let table = site.table.clone();
            async move {
                let api = api(&table).await;
                let all = json!({ "max_results": 100 });
                let experiments = post(&api, workspace, "2.0/mlflow/experiments/search", all).await;
                let request = Request::builder().uri("/api/2.0/mlflow/model-versions/search");
                let request = request.header("x-mlflow-workspace", workspace).body("".into()).unwrap();
                let versions = api.send(request).await.ok();
                let count = |list: &Value| list.as_array().map_or(0, Vec::len);
                (count(&experiments["experiments"]), count(&versions["model_versions"]))
            }
        };
        // Besides the default experiment, each of the three calls of `fill` has created an
        // experiment and a version.
        assert_eq!(found(&moved, "default").await, (4, 3));
        assert_eq!(found(&site, "default").await, (2, 1));

        delete(&site.table, WorkspaceDeletionMode::Cascade).await.unwrap();
        assert_eq!(found(&site, "default").await, (2, 1));
        let workspaces = Workspaces::new(site.table.clone());
        let names = workspaces.names().await.unwrap();
        let [_, removed] = names.as_slice() else { panic!("{names:?}") };
        assert!(removed.is_for_removal());
        // A new workspace of the same name contains nothing of the old one, and can reuse its
        // names.
        workspaces.create(&team(), &WorkspaceChange::default()).await.unwrap();
        assert_eq!(found(&site, TEAM).await, (0, 0));
        fill(&api(&site.table).await, TEAM, "theirs").await;
        assert_eq!(found(&site, TEAM).await, (1, 1));
        workspaces.remove_contents(removed).await.unwrap();
        assert_eq!(found(&site, TEAM).await, (1, 1));
        let left = all_items(&site).await;
        let is_removed = |key: &&String| key.starts_with(&format!("RM#{removed}/"));
        assert_eq!(left.keys().filter(is_removed).collect::<Vec<_>>(), Vec::<&String>::new());
    });
}
