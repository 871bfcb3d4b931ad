//! Permissions of queries. A query must return only data that its caller may read through the
//! endpoints that the query calls.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use access::{Action, Authorizer, Guard, Resource, Visibility};
use artifact_store::ArtifactStore;
use mlflow_api::ExperimentId;
use serde_json::{Value, json};
use service::{FunctionContext, InternalCalls};
use table::Table;
use test_site::{ROOT, TestAuthorizer, TestClient, TestEnvironment};

/// Returns the endpoints that queries call, each with its own authorization.
fn calls(table: &Table, guard: &Arc<dyn Authorizer>) -> InternalCalls {
    let tracking = FunctionContext::new(tracking::store::Store::new(table.clone(), ROOT), Arc::clone(guard));
    let registry = FunctionContext::new(registry::store::Store::new(table.clone(), ROOT), Arc::clone(guard));
    // The artifact directory does not exist, so lists of artifacts are empty.
    let files = ArtifactStore::in_directory(Path::new("/nothing is here"));
    let artifacts = FunctionContext::new(artifacts::store::Store::new(table.clone(), files), Arc::clone(guard));
    let calls = InternalCalls::default().with(tracking::routes(), &tracking).with(registry::routes(), &registry);
    calls.with(artifacts::routes(), &artifacts)
}

fn api(site: &TestEnvironment, guard: &Arc<dyn Authorizer>) -> TestClient {
    let graphql = graphql::Store::new(site.table.clone(), calls(&site.table, guard)).unwrap();
    TestClient(service::router(graphql::routes(), &FunctionContext::new(graphql, Arc::clone(guard))))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_shows_what_its_caller_may_read() {
    let site = TestEnvironment::new().await;
    let tracking = tracking::store::Store::new(site.table.clone(), ROOT);
    let registry = registry::store::Store::new(site.table.clone(), ROOT);
    let everything = TestClient(service::join_routers(
        tracking::router(&tracking, test_site::everybody()),
        [registry::router(&registry, test_site::everybody())],
    ));
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    everything.post("registered-models/create", json!({ "name": "secret" })).await.ok();
    let mut made = Vec::new();
    for name in ["open", "closed"] {
        let id = text(&everything.post("experiments/create", json!({ "name": name })).await.ok(), "/experiment_id");
        let run = everything.post("runs/create", json!({ "experiment_id": id, "run_name": name })).await.ok();
        let run = text(&run, "/run/info/run_id");
        let version = json!({ "name": "secret", "source": "s3://bucket/model", "run_id": run });
        everything.post("model-versions/create", version).await.ok();
        made.push((id, run));
    }
    let open = Guard::Experiment(ExperimentId::parse(&made[0].0).unwrap());
    // The caller may read and list only this experiment. The permission for runs of the workspace
    // is needed to search model versions by their runs.
    let open = Arc::new(HashSet::from([open]));
    let runs = Guard::Workspace(Resource::Run);
    let guard = TestAuthorizer::new(Visibility::Only(Arc::clone(&open)), move |(action, what)| {
        matches!(action, Action::Read | Action::List) && (open.contains(what) || *what == runs)
    });
    let guard: Arc<dyn Authorizer> = Arc::new(guard);
    let api = api(&site, &guard);
    let query = async |query: String| {
        let body = json!({ "query": query });
        api.call_at("POST", "/graphql", body.to_string()).await.ok()
    };

    let runs = async |(_, run): &(String, String)| {
        let fields = "info { runName } experiment { name } modelVersions { name }";
        query(format!("{{ mlflowGetRun(input: {{ runId: \"{run}\" }}) {{ run {{ {fields} }} }} }}")).await
    };
    let shown = json!({ "info": { "runName": "open" }, "experiment": { "name": "open" }, "modelVersions": [] });
    assert_eq!(runs(&made[0]).await, json!({ "data": { "mlflowGetRun": { "run": shown } }, "errors": null }));
    assert_eq!(runs(&made[1]).await, json!({ "data": { "mlflowGetRun": null }, "errors": ["Permission denied"] }));

    let ids = json!([made[0].0, made[1].0]);
    let found =
        query(format!("{{ mlflowSearchRuns(input: {{ experimentIds: {ids} }}) {{ runs {{ info {{ runName }} }} }} }}"));
    let expected = json!({ "mlflowSearchRuns": { "runs": [{ "info": { "runName": "open" } }] } });
    assert_eq!(found.await["data"], expected);

    let found = query(format!(
        "{{ a: mlflowGetExperiment(input: {{ experimentId: \"{}\" }}) {{ experiment {{ name }} }} \
         b: mlflowSearchModelVersions(input: {{ }}) {{ modelVersions {{ name }} }} \
         c: mlflowGetMetricHistoryBulkInterval(input: {{ runIds: [\"{}\"], metricKey: \"m\" }}) {{ metrics {{ key }} }} }}",
        made[1].0, made[1].1
    ));
    let expected = json!({
        "data": { "a": null, "b": { "modelVersions": [] }, "c": null },
        "errors": ["Permission denied", "Permission denied"],
    });
    assert_eq!(found.await, expected);
}
