//! A table with a row of each type, filled by requests.

use std::ops::Range;
use std::path::Path;

use access::{AllowedActions, Restriction};
use artifact_store::ArtifactStore;
use auth::store::NewToken;
use embedded_engine::faults::InjectedFault;
use entities::trace_retention::TraceRetentionSetting;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::rows::RowDescription;
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{UserName, Workspace};
use permissions::UserAuthorizer;
use retention::{NamedEntities, Retention};
use serde_json::{Value, json};
use table::Table;
use test_site::route_samples::{SAMPLES, SampleClient, export};
use test_site::{TABLE, TestClient, TestEnvironment, key_of};

use super::process;
use super::reads::Asked;
use super::recorded_tables::ACCESS;
use crate::faults::packing::{STEP, indexer};
use crate::faults::removal::Silent;
use crate::test_server::ROOT;

const V2: &str = "/api/2.0/mlflow";
const V3: &str = "/api/3.0/mlflow";
/// A workspace with an entity of each kind.
pub(super) const TEAM: &str = "team";
/// Length of a text that is stored in parts, because an item cannot hold it even when it is
/// compressed.
const LONG: u64 = 360_000;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns a reproducible text that cannot be compressed much.
fn noise(seed: u64) -> String {
    let mut state = seed;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[usize::try_from(state >> 58).unwrap()])
    };
    (0..LONG).map(|_| letter()).collect()
}

/// Delivers all records of the stream to the indexer.
async fn index(site: &TestEnvironment, indexer: &Indexer) {
    let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
    loop {
        let records = stream.oldest(1_000).await.unwrap();
        let Some(last) = records.last() else { return };
        let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
        let answer = indexer.handle(StreamBatch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
        stream.forget_through(&last).await.unwrap();
    }
}

/// Delivers all changes to the indexer, and makes it check what it postponed, until everything is
/// packed and indexed.
pub(super) async fn follow(site: &TestEnvironment) {
    let indexer = indexer(&site.table).with_usage_counter();
    for _ in 0..3 {
        index(site, &indexer).await;
        runtime::clock::sleep(STEP).await;
        indexer.tick().await.unwrap();
    }
    index(site, &indexer).await;
}

/// Returns the filled table, and requests that read its content.
pub(super) async fn filled(files: &Path) -> (TestEnvironment, Vec<Asked>) {
    let site = TestEnvironment::with_stream().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let api = process(&site, files).await;
    let mut walk = SampleClient::new(api.0.clone());
    for samples in &SAMPLES {
        (samples.reads)(&mut walk).await;
    }
    let mut asked: Vec<_> = walk.reads.drain(..).map(Asked::from).collect();
    let experiment = everything(&api, &mut asked).await;
    of_users(&site, &api, &experiment).await;
    of_a_workspace(&site, &api, &mut asked).await;
    TraceRetentionSetting::write(&site.table, Some("36500d")).await.unwrap();
    follow(&site).await;
    changes(&site, &api, &mut asked).await;
    removals(&site, &api).await;
    asked.push(Asked::new("GET", format!("{V2}/experiments/search?max_results=100"), json!({})));
    asked.push(Asked::new("GET", format!("{V2}/users/list"), json!({})));
    (site, asked)
}

async fn post(api: &TestClient, path: &str, body: Value) -> Value {
    Asked::new("POST", path, body).done(api).await
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
}

async fn run(api: &TestClient, experiment: &str, name: &str) -> String {
    let tags = json!([{ "key": "long", "value": "t".repeat(3_000) }]);
    let new = json!({ "experiment_id": experiment, "start_time": 1, "run_name": name, "tags": tags });
    text(&post(api, &format!("{V2}/runs/create"), new).await, "/run/info/run_id")
}

async fn log_points(api: &TestClient, run: &str, name: &str, steps: Range<i64>) {
    let points: Vec<_> =
        steps.map(|step| json!({ "key": name, "value": step, "timestamp": step, "step": step })).collect();
    post(api, &format!("{V2}/runs/log-batch"), json!({ "run_id": run, "metrics": points })).await;
}

/// Creates entities that the samples lack: wide, long and large ones.
async fn everything(api: &TestClient, asked: &mut Vec<Asked>) -> String {
    let tags =
        json!([{ "key": "long", "value": "t".repeat(3_000) }, { "key": "mlflow.trace.retention", "value": "36500d" }]);
    let new = json!({ "name": "everything", "tags": tags });
    let experiment = text(&post(api, &format!("{V2}/experiments/create"), new).await, "/experiment_id");
    let wide = run(api, &experiment, "wide").await;
    for step in 0..2 {
        let metric =
            |number: i64| json!({ "key": format!("m{number}"), "value": number, "timestamp": step, "step": step });
        let param = |number: usize| {
            let value = if number < 5 { "p".repeat(6_000) } else { number.to_string() };
            json!({ "key": format!("p{number}"), "value": value })
        };
        let metrics: Vec<_> = (0..200).map(metric).collect();
        let params: Vec<_> = (0..90).map(param).collect();
        let batch = json!({ "run_id": wide, "metrics": metrics, "params": params });
        post(api, &format!("{V2}/runs/log-batch"), batch).await;
    }
    // A chart has a row per 1,000 points.
    for thousand in 0..5 {
        log_points(api, &wide, "many", thousand * 1_000..(thousand + 1) * 1_000).await;
    }
    let dataset = json!({ "name": "big", "digest": "d", "source_type": "local", "source": "s", "schema": noise(1) });
    let datasets = json!([{ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": "train" }] }]);
    post(api, &format!("{V2}/runs/log-inputs"), json!({ "run_id": wide, "datasets": datasets })).await;
    let ended = json!({ "run_id": wide, "status": "FINISHED", "end_time": 9 });
    post(api, &format!("{V2}/runs/update"), ended).await;

    let new = json!({ "name": "big", "experiment_ids": [experiment] });
    let dataset = text(&post(api, &format!("{V3}/datasets/create"), new).await, "/dataset/dataset_id");
    let records = json!([{ "inputs": { "q": 1 }, "outputs": noise(2) }]).to_string();
    post(api, &format!("{V3}/datasets/{dataset}/records"), json!({ "records": records })).await;
    let scorer = json!({ "instructions_judge_pydantic_data": {}, "x": noise(3) }).to_string();
    let new = json!({ "experiment_id": experiment, "name": "big", "serialized_scorer": scorer });
    post(api, &format!("{V3}/scorers/register"), new).await;
    let prompt = json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]);
    post(api, &format!("{V2}/registered-models/create"), json!({ "name": "prompt", "tags": prompt })).await;
    let tags = json!([{ "key": "mlflow.prompt.text", "value": "Say it. ".repeat(9_000) }, { "key": "mlflow.prompt.is_prompt", "value": "true" }]);
    let version = json!({ "name": "prompt", "source": "dummy-source", "tags": tags });
    post(api, &format!("{V2}/model-versions/create"), version).await;

    let get = |path: String| Asked::new("GET", path, json!({}));
    let search = |body: Value| Asked::new("POST", format!("{V2}/runs/search"), body);
    let history = |path: &str| get(format!("{V2}/metrics/{path}&metric_key=many&max_results=300"));
    let query = format!(
        "{{ mlflowGetRun(input: {{ runId: \"{wide}\" }}) {{ run {{ info {{ runId status }} experiment {{ name }} modelVersions {{ name }} }} }} }}"
    );
    asked.extend([
        get(format!("{V2}/runs/get?run_id={wide}")),
        history(&format!("get-history?run_id={wide}")),
        history(&format!("get-history-bulk-interval?run_ids={wide}")),
        search(json!({ "experiment_ids": [experiment], "order_by": ["metrics.m1"] })),
        search(json!({ "experiment_ids": [experiment], "filter": "params.p7 = '7' AND datasets.name = 'big'" })),
        get(format!("{V3}/datasets/{dataset}/records")),
        get(format!("{V3}/scorers/get?experiment_id={experiment}&name=big")),
        get(format!("{V2}/model-versions/get?name=prompt&version=1")),
        Asked::new("POST", "/graphql", json!({ "query": query })),
    ]);
    experiment
}

/// Creates users with everything that they can have.
async fn of_users(site: &TestEnvironment, api: &TestClient, experiment: &str) {
    let password = "a password of the table";
    post(api, &format!("{V2}/users/create"), json!({ "username": "reader", "password": password })).await;
    let scorer = format!("{experiment}/big");
    for (kind, resource) in [
        ("experiment", experiment),
        ("registered_model", "after"),
        ("prompt", "prompt"),
        ("scorer", scorer.as_str()),
        ("gateway_secret", "s"),
        ("run", "*"),
    ] {
        let grant =
            json!({ "username": "reader", "resource_type": kind, "resource_id": resource, "permission": "READ" });
        post(api, &format!("{V3}/users/permissions/grant"), grant).await;
    }
    let reader = UserName::new("reader").unwrap();
    let access: Table = Table::new(site.engine.client(), ACCESS);
    let basic = UserAuthorizer::new(site.table.clone(), access.clone(), PermissionLevel::NoPermissions);
    let users = auth::store::Store::new(site.table.clone(), access, basic);
    let restriction = Restriction { experiment: None, actions: AllowedActions::Read };
    users.token_create(&reader, NewToken { name: "t".to_owned(), restriction, days: None }).await.unwrap();
    assert!(users.session_open(&reader, password.to_owned(), None).await.unwrap().is_some());
    users.principal_map("arn:aws:iam::123456789012:role/reader", &reader).await.unwrap();
}

async fn of_a_workspace(site: &TestEnvironment, api: &TestClient, asked: &mut Vec<Asked>) {
    post(api, &format!("{V3}/workspaces"), json!({ "name": TEAM, "description": "of the table" })).await;
    let of = |method: &str, path: String, body: Value| Asked::of(TEAM, method, path, body);
    let made = of("POST", format!("{V2}/experiments/create"), json!({ "name": "e" })).done(api).await;
    let experiment = text(&made, "/experiment_id");
    let new = json!({ "experiment_id": experiment, "start_time": 1, "run_name": "n" });
    let run = text(&of("POST", format!("{V2}/runs/create"), new).done(api).await, "/run/info/run_id");
    of("POST", format!("{V2}/registered-models/create"), json!({ "name": "m" })).done(api).await;
    let quota = [(entities::quota::QuotaKind::Runs, 1_000)].into_iter().collect();
    let name = Workspace::parse(TEAM).unwrap();
    entities::workspaces::Workspaces::new(site.table.clone()).set_quota(&name, &quota).await.unwrap();
    asked.extend([
        of("GET", format!("{V2}/experiments/get-by-name?experiment_name=e"), json!({})),
        of("GET", format!("{V2}/runs/get?run_id={run}"), json!({})),
        of("POST", format!("{V2}/runs/search"), json!({ "experiment_ids": [experiment] })),
        of("GET", format!("{V2}/registered-models/search"), json!({})),
        of("GET", format!("{V3}/workspaces"), json!({})),
    ]);
}

/// Makes changes that are not indexed yet, and logs points that are not packed yet.
async fn changes(site: &TestEnvironment, api: &TestClient, asked: &mut Vec<Asked>) {
    let new = json!({ "name": "changing" });
    let experiment = text(&post(api, &format!("{V2}/experiments/create"), new).await, "/experiment_id");
    let run = run(api, &experiment, "running").await;
    log_points(api, &run, "first", 0..200).await;
    index(site, &indexer(&site.table)).await;
    // This change comes too soon after the previous one to be indexed, so the run is postponed.
    log_points(api, &run, "again", 0..1).await;
    index(site, &indexer(&site.table)).await;
    let names: Vec<_> = (0..12).map(|number| format!("{number} {}", "n".repeat(40))).collect();
    for step in 0..4 {
        let point = |name: &String| json!({ "key": name, "value": step, "timestamp": step, "step": step });
        let metrics: Vec<_> = names.iter().map(point).collect();
        post(api, &format!("{V2}/runs/log-batch"), json!({ "run_id": run, "metrics": metrics })).await;
    }
    log_points(api, &run, "a call of its own", 0..500).await;
    let trace = format!("{:032x}", 9);
    post(api, "/v1/traces", export(&trace, 1)).await;
    asked.extend([
        Asked::new("GET", format!("{V2}/runs/get?run_id={run}"), json!({})),
        Asked::new(
            "GET",
            format!("{V2}/metrics/get-history?run_id={run}&metric_key=a%20call%20of%20its%20own"),
            json!({}),
        ),
        Asked::new("POST", format!("{V2}/runs/search"), json!({ "experiment_ids": [experiment] })),
        Asked::new("GET", format!("{V3}/traces/get?trace_id=tr-{trace}"), json!({})),
    ]);
}

/// Starts permanent removals that are interrupted.
async fn removals(site: &TestEnvironment, api: &TestClient) {
    let mut experiments = Vec::new();
    for name in ["of a run", "of a model", "of an experiment"] {
        let new = json!({ "name": name });
        experiments.push(text(&post(api, &format!("{V2}/experiments/create"), new).await, "/experiment_id"));
    }
    let run = run(api, &experiments[0], "goes").await;
    post(api, &format!("{V2}/runs/delete"), json!({ "run_id": run })).await;
    cut_off(site, "RunRemoval", &NamedEntities { runs: vec![run], ..NamedEntities::default() }).await;
    let new = json!({ "experiment_id": experiments[1], "name": "goes" });
    let model = text(&post(api, &format!("{V2}/logged-models"), new).await, "/model/info/model_id");
    Asked::new("DELETE", format!("{V2}/logged-models/{model}"), json!({})).send(api).await;
    cut_off(site, "LoggedModelRemoval", &NamedEntities { models: vec![model], ..NamedEntities::default() }).await;
    let last = experiments[2].clone();
    post(api, &format!("{V2}/experiments/delete"), json!({ "experiment_id": last })).await;
    cut_off(site, "ExperimentRemoval", &NamedEntities { experiments: vec![last], ..NamedEntities::default() }).await;
}

/// Repeats a removal, interrupted later each time, until a row of this type exists.
async fn cut_off(site: &TestEnvironment, row: &str, named: &NamedEntities) {
    let retention = Retention::new(site.impatient(), ArtifactStore::default()).leaving_artifacts(true);
    for request in 1.. {
        site.faults.trouble_at(InjectedFault::Disconnected, request, u64::MAX);
        let removed = async {
            let found = retention.named(named, None).await?;
            retention.remove(&Workspace::default(), &found, &Silent).await
        };
        let is_removed = removed.await.is_ok();
        let items = site.engine.items(TABLE).await.unwrap();
        if is_removed || items.iter().any(|item| RowDescription::of(&key_of(item)).unwrap().name == row) {
            site.faults.work_again();
            return;
        }
    }
}
