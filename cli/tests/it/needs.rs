//! What each endpoint touches in the table is within what its needs named, and what it writes within those that write; none of its needs is
//! idle.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{Action, Ask, Authorizer, Guarded, Permission, Resource, Visible};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use embedded_engine::{Engine, client_over};
use mlflow_api::{ExperimentId, ModelId, RegisteredModelName, RunId, Workspace};
use serde_json::{Value, json};
use service::Route;
use table::Table;
use test_site::Judge;

use crate::site::{ROOT, TABLE, Walk, guarded as guarded_functions};
use crate::writes;

/// What one call to an endpoint asked to be allowed, which partitions its requests to the table named, and to which of them it wrote.
#[derive(Clone, Debug, Default)]
struct Record {
    wanted: Vec<Ask>,
    partitions: BTreeSet<String>,
    written: BTreeSet<String>,
}

/// Records in the place of the authorizer, which admits everybody, and between the SDK and the engine.
#[derive(Clone, Debug)]
struct Probe {
    record: Arc<Mutex<Record>>,
    inner: SharedHttpClient,
}

impl HttpClient for Probe {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(ProbedConnector { inner, record: Arc::clone(&self.record) })
    }
}

#[derive(Clone, Debug)]
struct ProbedConnector {
    inner: SharedHttpConnector,
    record: Arc<Mutex<Record>>,
}

impl HttpConnector for ProbedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap();
        let operation = request.headers().get("x-amz-target").and_then(|target| target.split_once('.')).unwrap().1;
        let mut record = self.record.lock().unwrap();
        partitions_of(&body, &mut record.partitions);
        match operation {
            "GetItem" | "BatchGetItem" | "Query" => {}
            "TransactWriteItems" => {
                // A transaction may only look whether something is there.
                let writes = body["TransactItems"].as_array().unwrap().iter();
                writes
                    .filter(|write| write.get("ConditionCheck").is_none())
                    .for_each(|write| partitions_of(write, &mut record.written));
            }
            "PutItem" | "UpdateItem" | "DeleteItem" | "BatchWriteItem" => partitions_of(&body, &mut record.written),
            other => panic!("{other} was not expected"),
        }
        drop(record);
        self.inner.call(request)
    }
}

/// The partitions that a request to DynamoDB names, in keys and items, and the one that a query asks for.
fn partitions_of(body: &Value, found: &mut BTreeSet<String>) {
    match body {
        Value::Object(object) => {
            found.extend(object.get("PK").and_then(|key| key["S"].as_str()).map(str::to_owned));
            if let Some(condition) = object.get("KeyConditionExpression").and_then(Value::as_str) {
                let placeholder = condition.split_once('=').unwrap().1.split_whitespace().next().unwrap();
                let value = &object["ExpressionAttributeValues"][placeholder]["S"];
                found.insert(value.as_str().unwrap().to_owned());
            }
            object.values().for_each(|value| partitions_of(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| partitions_of(item, found)),
        _ => {}
    }
}

/// Those of the partitions that nothing wanted covers.
fn uncovered(record: &Record) -> Vec<String> {
    record.partitions.iter().filter(|partition| !is_covered(partition, &record.wanted)).cloned().collect()
}

/// Those that were written to, of which nothing wanted says that it writes.
fn unwritable(record: &Record) -> Vec<String> {
    let writing: Vec<_> = record.wanted.iter().filter(|ask| ask.action.writes()).cloned().collect();
    let written = record.written.iter().filter(|partition| !is_covered(partition, &writing));
    // As in MLflow, who makes a version of a logged model need only read that: the version is listed in a tag of it.
    let makes_version = writing.iter().any(|ask| ask.action == Action::Create && ask.kind == Resource::ModelVersion);
    let of_logged_model = |partition: &&String| {
        let source: Vec<_> = record.wanted.iter().filter(|ask| ask.kind == Resource::LoggedModel).cloned().collect();
        makes_version && is_covered(partition, &source)
    };
    written.filter(|partition| !of_logged_model(partition)).cloned().collect()
}

fn is_covered(partition: &str, wanted: &[Ask]) -> bool {
    let (kind, rest) = partition.split_once('#').unwrap_or((partition, ""));
    let wants = |guarded: &Guarded| wanted.iter().any(|wanted| wanted.guard == *guarded);
    // What is listed is filtered by what may be seen, before it is read further.
    let lists = |resource| wants_of(wanted, Action::List, &Guarded::Workspace(resource));
    let is_in = |guarded: &Guarded, experiment: ExperimentId| match guarded {
        Guarded::Experiment(wanted) | Guarded::Scorer(wanted, _) => *wanted == experiment,
        _ => false,
    };
    let of_experiment = |experiment: Option<ExperimentId>| {
        let of_this = |experiment| wanted.iter().any(|wanted| is_in(&wanted.guard, experiment));
        lists(Resource::Experiment) || lists(Resource::Scorer) || experiment.is_some_and(of_this)
    };
    let of_any_experiment = || wanted.iter().any(|wanted| matches!(wanted.guard, Guarded::Experiment(_)));
    match kind {
        "EXP" | "EVALEXP" if of_experiment(ExperimentId::parse(rest).ok()) => true,
        // What the indexer derives from an experiment's runs.
        "IX" => of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok())),
        // One that is only now created has no id before.
        "EXP" => wants_of(wanted, Action::Create, &Guarded::Workspace(Resource::Experiment)),
        // A dataset names the experiments that list it: deleting it takes it off their lists.
        "EVALEXP" => wanted
            .iter()
            .any(|wanted| wanted.action == Action::Delete && matches!(wanted.guard, Guarded::EvaluationDataset(_))),
        "RUN" => {
            // The registry keeps its list of a run's versions there. A version that is made from another has that one's run.
            let is_of_registry = wanted.iter().any(|wanted| matches!(wanted.guard, Guarded::RegisteredModel(_)));
            let of_run = of_experiment(RunId::parse(rest).and_then(|run| run.experiment()));
            of_run || is_of_registry || lists(Resource::RegisteredModel) || lists(Resource::ModelVersion)
        }
        "MODEL" => of_experiment(ModelId::parse(rest).and_then(|model| model.experiment())),
        // Traces are guarded by their experiments, which their ids do not say; an index has those of a client's request by experiment.
        // Parts of a dataset of an experiment are named by a hash; who restores something looks whether it is being removed.
        "TRACE" | "CLIENT" | "DATA" | "REMOVAL" => of_any_experiment(),
        "TR" | "TS" => {
            of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok()))
        }
        "RM" => {
            // A model that was called `old` has its versions there still, and whoever renames it names the new name.
            let names = if ["old", "new"].contains(&rest) { vec!["old", "new"] } else { vec![rest] };
            let is_wanted = |name: &&str| wants(&Guarded::RegisteredModel(RegisteredModelName::named(name)));
            lists(Resource::RegisteredModel) || lists(Resource::ModelVersion) || names.iter().any(is_wanted)
        }
        "EVAL" | "EVALKEY" => {
            let of_this = |wanted: &Ask| {
                let creates = wanted.action == Action::Create && wanted.kind == Resource::EvaluationDataset;
                creates || matches!(&wanted.guard, Guarded::EvaluationDataset(id) if id.as_str() == rest)
            };
            lists(Resource::EvaluationDataset) || wanted.iter().any(of_this)
        }
        // The directory of the workspace: names and ids of what is created, listed, renamed or deleted in it.
        "WORKSPACE" => !wanted.is_empty(),
        // Settings of the server, of nobody in particular.
        "CONFIG" => true,
        _ => false,
    }
}

fn wants_of(wanted: &[Ask], action: Action, guarded: &Guarded) -> bool {
    wanted.iter().any(|wanted| wanted.action == action && wanted.guard == *guarded)
}

/// What was found of all calls.
#[derive(Default)]
struct Findings {
    calls: usize,
    beyond: BTreeSet<String>,
    /// What was written where nothing said so.
    overwritten: BTreeSet<String>,
    /// Endpoints of which one call failed that check when what it needs was only to be read.
    tight_writes: BTreeSet<String>,
    /// Endpoints of which one call failed the check when a need was taken away.
    tight: BTreeSet<String>,
}

/// The functions as in `serve`, each call between two looks at the record.
fn probed(probe: &Probe, table: &Table, directory: &Path, findings: &Arc<Mutex<Findings>>) -> Router {
    let (record, findings) = (Arc::clone(&probe.record), Arc::clone(findings));
    let wanted = Arc::clone(&record);
    // A query asks once for each endpoint that it calls.
    let admit: Arc<dyn Authorizer> = Arc::new(Judge::of_asks(Visible::Everything, move |asked| {
        wanted.lock().unwrap().wanted.push(asked.clone());
        true
    }));
    let all = guarded_functions(table, directory, &admit);
    all.layer(from_fn(move |request: Request, next: Next| {
        let (record, findings) = (Arc::clone(&record), Arc::clone(&findings));
        async move {
            *record.lock().unwrap() = Record::default();
            let call = format!("{} {}", request.method(), request.uri().path());
            let answer = next.run(request).await;
            let record = record.lock().unwrap().clone();
            let mut findings = findings.lock().unwrap();
            findings.calls += 1;
            findings.beyond.extend(uncovered(&record).iter().map(|partition| format!("{call}: {partition}")));
            findings.overwritten.extend(unwritable(&record).iter().map(|partition| format!("{call}: {partition}")));
            let mut reading = record.clone();
            reading.wanted.iter_mut().for_each(|ask| ask.action = Action::Read);
            if !unwritable(&reading).is_empty() {
                findings.tight_writes.insert(call.clone());
            }
            for removed in &record.wanted {
                let mut fewer = record.clone();
                fewer.wanted.retain(|wanted| wanted.guard != removed.guard);
                if !uncovered(&fewer).is_empty() {
                    findings.tight.insert(call.clone());
                }
            }
            answer
        }
    }))
}

/// One request to every endpoint that reads.
pub(crate) async fn reads(walk: &mut Walk) {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let experiment = text(&walk.post("experiments/create", json!({ "name": "read" })).await, "/experiment_id");
    let run = walk.post("runs/create", json!({ "experiment_id": experiment })).await;
    let run = text(&run, "/run/info/run_id");
    let model = walk.post("logged-models", json!({ "experiment_id": experiment, "name": "m" })).await;
    let model = text(&model, "/model/info/model_id");
    let point = json!({ "run_id": run, "key": "auc", "value": 0.5, "timestamp": 1, "model_id": model });
    walk.post("runs/log-metric", point).await;
    let named = json!([{ "model_id": model, "step": 1 }]);
    walk.post("runs/outputs", json!({ "run_id": run, "models": named })).await;
    walk.post("runs/log-inputs", json!({ "run_id": run, "models": named })).await;
    let (v2, v3, ajax) = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/2.0/mlflow");
    let get = |path: &str| format!("GET {path}");
    let one = [json!({ "experiment_id": experiment }), json!({ "experiment_name": "read" })];
    walk.send(&get(&format!("{v2}/experiments/get")), &[], one[0].clone()).await;
    walk.send(&get(&format!("{v2}/experiments/get-by-name")), &[], one[1].clone()).await;
    walk.send(&get(&format!("{v2}/experiments/search")), &[], json!({ "max_results": 10 })).await;
    walk.post("experiments/search", json!({ "max_results": 10 })).await;
    let experiments = json!({ "experiment_ids": [experiment] });
    walk.send(&format!("POST {ajax}/experiments/search-datasets"), &[], experiments.clone()).await;
    walk.send(&get(&format!("{v2}/runs/get")), &[], json!({ "run_id": run })).await;
    walk.post("runs/search", experiments.clone()).await;
    let history = json!({ "run_id": run, "metric_key": "auc" });
    walk.send(&get(&format!("{v2}/metrics/get-history")), &[], history).await;
    let histories = json!({ "run_ids": [run], "metric_key": "auc" });
    walk.send(&get(&format!("{v2}/metrics/get-history-bulk-interval")), &[], histories).await;
    let bulk = format!("{ajax}/metrics/get-history-bulk");
    walk.endpoints.insert(get(&bulk));
    let asked = format!("{bulk}?run_id={run}&metric_key=auc");
    assert_eq!(crate::site::send(&walk.router, "GET", &asked, &Value::Null).await.0, 200);
    walk.send(&get(&format!("{v2}/logged-models/{{model_id}}")), &[&model], json!({})).await;
    walk.post("logged-models/search", experiments.clone()).await;

    let all = format!("{v3}/datasets");
    let new = json!({ "name": "set", "experiment_ids": [experiment] });
    let dataset = text(&walk.send(&format!("POST {all}/create"), &[], new).await, "/dataset/dataset_id");
    for method in ["GET", "POST"] {
        walk.send(&format!("{method} {all}/search"), &[], experiments.clone()).await;
    }
    for part in ["", "/records", "/experiment-ids"] {
        walk.send(&get(&format!("{all}/{{dataset_id}}{part}")), &[&dataset], json!({})).await;
    }
    let all = format!("{v3}/scorers");
    let named = json!({ "experiment_id": experiment, "name": "s" });
    let mut scorer = named.clone();
    scorer["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {} }).to_string().into();
    let scorer = text(&walk.send(&format!("POST {all}/register"), &[], scorer).await, "/scorer_id");
    walk.send(&get(&format!("{all}/list")), &[], json!({ "experiment_id": experiment })).await;
    walk.send(&get(&format!("{all}/versions")), &[], named.clone()).await;
    walk.send(&get(&format!("{all}/get")), &[], named).await;
    walk.send(&get(&format!("{all}/online-configs")), &[], json!({ "scorer_ids": [scorer] })).await;

    reads_of_traces(walk).await;
    walk.post("registered-models/create", json!({ "name": "kept" })).await;
    let source = format!("{ROOT}/{experiment}/{run}/artifacts/m");
    walk.post("model-versions/create", json!({ "name": "kept", "source": source, "run_id": run })).await;
    walk.post("model-versions/create", json!({ "name": "kept", "source": "models:/kept/1" })).await;
    let of_model = json!({ "name": "kept", "source": format!("models:/{model}"), "model_id": model });
    walk.post("model-versions/create", of_model).await;
    walk.post("registered-models/alias", json!({ "name": "kept", "alias": "a", "version": "1" })).await;
    let name = json!({ "name": "kept" });
    walk.send(&get(&format!("{v2}/registered-models/get")), &[], name.clone()).await;
    walk.send(&get(&format!("{v2}/registered-models/search")), &[], json!({})).await;
    for method in ["GET", "POST"] {
        walk.send(&format!("{method} {v2}/registered-models/get-latest-versions"), &[], name.clone()).await;
    }
    walk.send(&get(&format!("{v2}/registered-models/alias")), &[], json!({ "name": "kept", "alias": "a" })).await;
    let version = json!({ "name": "kept", "version": "1" });
    walk.send(&get(&format!("{v2}/model-versions/get")), &[], version.clone()).await;
    walk.send(&get(&format!("{v2}/model-versions/get-download-uri")), &[], version).await;
    walk.send(&get(&format!("{v2}/model-versions/search")), &[], json!({ "filter": "name = 'kept'" })).await;
    let by_run = json!({ "filter": format!("run_id = '{run}'") });
    walk.send(&get(&format!("{v2}/model-versions/search")), &[], by_run).await;
}

async fn reads_of_traces(walk: &mut Walk) {
    let (all, digits) = ("/api/3.0/mlflow/traces", format!("{:032x}", 99));
    let trace = format!("tr-{digits}");
    walk.send("POST /v1/traces", &[], writes::export(&digits, 1)).await;
    let feedback = json!({ "assessment": { "assessment_id": "a-1", "assessment_name": "n", "feedback": {} } });
    walk.send(&format!("POST {all}/{{trace_id}}/assessments"), &[&trace], feedback).await;
    let ids = [trace.as_str()];
    walk.send(&format!("GET {all}/{{trace_id}}"), &ids, json!({})).await;
    walk.send(&format!("GET {all}/get"), &[], json!({ "trace_id": trace })).await;
    walk.send(&format!("GET {all}/batchGet"), &[], json!({ "trace_ids": [trace] })).await;
    walk.send(&format!("POST {all}/batchGetInfos"), &[], json!({ "trace_ids": [trace] })).await;
    let places = json!([{ "mlflow_experiment": { "experiment_id": "0" } }]);
    let filter = "feedback.n IS NULL AND span.name = 'x'";
    walk.send(&format!("POST {all}/search"), &[], json!({ "locations": places, "filter": filter })).await;
    let of_request = json!({ "locations": places, "filter": "client_request_id = 'x'" });
    walk.send(&format!("POST {all}/search"), &[], of_request).await;
    walk.send("GET /api/2.0/mlflow/traces", &[], json!({ "experiment_ids": ["0"], "order_by": ["name"] })).await;
    let count = json!([{ "aggregation_type": "COUNT" }]);
    let of_spans = json!({
        "experiment_ids": ["0"], "view_type": "SPANS", "metric_name": "span_count", "aggregations": count,
    });
    walk.send(&format!("POST {all}/metrics"), &[], of_spans).await;
    let filters = json!({ "experiment_ids": ["0"], "filter_string1": "name = 'a'", "filter_string2": filter });
    walk.send(&format!("POST {all}/calculate-filter-correlation"), &[], filters).await;
    walk.send(&format!("GET {all}/{{trace_id}}/assessments/{{assessment_id}}"), &[&trace, "a-1"], json!({})).await;
    walk.send("GET /api/2.0/mlflow/traces/{request_id}/info", &ids, json!({})).await;
    for version in ["2.0", "3.0"] {
        let path = format!("/ajax-api/{version}/mlflow/get-trace-artifact");
        walk.endpoints.insert(format!("GET {path}"));
        let asked = format!("{path}?request_id={trace}");
        assert_eq!(crate::site::send(&walk.router, "GET", &asked, &Value::Null).await.0, 200);
    }
}

/// A query to each root of the schema that has an endpoint of its own, and to what a run leads to.
async fn queries(walk: &mut Walk) {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let experiment = text(&walk.post("experiments/create", json!({ "name": "queried" })).await, "/experiment_id");
    let run = walk.post("runs/create", json!({ "experiment_id": experiment })).await;
    let run = text(&run, "/run/info/run_id");
    let of_run = "run { info { runId } experiment { name } modelVersions { name } }";
    for (method, query) in [
        ("POST", format!("{{ mlflowGetRun(input: {{ runId: \"{run}\" }}) {{ {of_run} }} }}")),
        (
            "GET",
            format!(
                "{{ mlflowGetExperiment(input: {{ experimentId: \"{experiment}\" }}) {{ experiment {{ name }} }} }}"
            ),
        ),
    ] {
        let answer = walk.send(&format!("{method} /graphql"), &[], json!({ "query": query })).await;
        assert_eq!(answer["errors"], Value::Null, "{query}");
    }
}

/// One request to every endpoint of the artifacts of a run.
pub(crate) async fn artifacts_of_a_run(walk: &mut Walk) {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let new = json!({ "name": "kept here", "artifact_location": "mlflow-artifacts:/kept" });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    let run = walk.post("runs/create", json!({ "experiment_id": experiment })).await;
    let run = text(&run, "/run/info/run_id");
    walk.send("GET /api/2.0/mlflow/artifacts/list", &[], json!({ "run_id": run })).await;
    let of_run = json!({ "run_id": run, "path": "x" });
    for (method, path, query, expected) in [
        ("POST", "/ajax-api/2.0/mlflow/upload-artifact", format!("?run_uuid={run}&path=x"), 200),
        ("GET", "/get-artifact", format!("?run_uuid={run}&path=x"), 200),
        ("POST", "/api/2.0/mlflow/artifacts/presigned-upload-url", String::new(), 400),
        ("POST", "/api/2.0/mlflow/artifacts/presigned-download-url", String::new(), 400),
    ] {
        walk.endpoints.insert(format!("{method} {path}"));
        let (status, answer) = crate::site::send(&walk.router, method, &format!("{path}{query}"), &of_run).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
}

/// One request to every endpoint of the files of a logged model and of its version.
async fn files_of_a_model(walk: &mut Walk, directory: &Path) {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let new = json!({ "name": "with files", "artifact_location": "mlflow-artifacts:/files" });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    let model = walk.post("logged-models", json!({ "experiment_id": experiment, "name": "m" })).await;
    let (model, uri) = (text(&model, "/model/info/model_id"), text(&model, "/model/info/artifact_uri"));
    let kept = directory.join(uri.strip_prefix("mlflow-artifacts:/").unwrap());
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("x"), "file").unwrap();
    walk.post("registered-models/create", json!({ "name": "files" })).await;
    let version = json!({ "name": "files", "source": format!("models:/{model}"), "model_id": model });
    walk.post("model-versions/create", version).await;
    let of_model = "mlflow/logged-models/{model_id}/artifacts";
    for (path, query) in [
        (format!("/api/2.0/{of_model}/directories"), ""),
        (format!("/ajax-api/2.0/{of_model}/files"), "?artifact_file_path=x"),
        ("/model-versions/get-artifact".to_owned(), "?name=files&version=1&path=x"),
    ] {
        walk.endpoints.insert(format!("GET {path}"));
        let path = format!("{}{query}", path.replace("{model_id}", &model));
        let (status, answer) = crate::site::send(&walk.router, "GET", &path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
}

/// A request and more to every endpoint but those of the proxy, with artifacts in a directory.
pub(crate) async fn all_calls(walk: &mut Walk, directory: &Path) {
    writes::of_tracking(walk).await;
    writes::of_evaluation(walk).await;
    writes::of_traces(walk).await;
    writes::of_the_registry(walk).await;
    reads(walk).await;
    queries(walk).await;
    artifacts_of_a_run(walk).await;
    files_of_a_model(walk, directory).await;
}

/// One request to every endpoint of the proxy, about a file of the default experiment.
pub(crate) async fn served(walk: &mut Walk) {
    let base = "/api/2.0/mlflow-artifacts";
    let parts = json!({ "path": "x", "num_parts": 1, "upload_id": "u", "parts": [{ "part_number": 1, "etag": "e" }] });
    // A directory takes no parts and has no URLs.
    for (method, path, expected) in [
        ("PUT", "artifacts/0/x", 200),
        ("GET", "artifacts?path=0", 200),
        ("GET", "artifacts/0/x", 200),
        ("POST", "mpu/create/0/x", 501),
        ("POST", "mpu/complete/0/x", 501),
        ("POST", "mpu/abort/0/x", 501),
        ("GET", "presigned/0/x", 501),
        ("DELETE", "artifacts/0/x", 200),
    ] {
        let (status, answer) = crate::site::send(&walk.router, method, &format!("{base}/{path}"), &parts).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
}

fn guarded<S: service::Store>(routes: Vec<Route<S>>) -> impl Iterator<Item = String> {
    let is_guarded = |route: &Route<S>| !matches!(route.permission, Permission::Open | Permission::SignedIn);
    let guarded = routes.into_iter().filter(is_guarded);
    guarded.map(|route| format!("{} {}", route.method, route.full_paths()[0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_touches_what_its_needs_named_and_nothing_else() {
    let engine = Engine::memory().unwrap();
    Table::new(engine.client(), TABLE).create_if_missing().await.unwrap();
    let probe = Probe { record: Arc::default(), inner: engine.http_client() };
    let table = Table::new(client_over(SharedHttpClient::new(probe.clone())), TABLE);
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let findings = Arc::<Mutex<Findings>>::default();
    let directory = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(probed(&probe, &table, directory.path(), &findings));
    all_calls(&mut walk, directory.path()).await;

    let routes = guarded(tracking::routes()).chain(guarded(registry::routes())).chain(guarded(evaluation::routes()));
    let routes = routes.chain(guarded(traces::routes()));
    // The proxy reads nothing of the table: the tests of the function hold its endpoints against what callers may do.
    let artifacts = guarded(artifacts::routes()).filter(|route| !route.contains("/mlflow-artifacts/"));
    let routes = routes.chain(artifacts);
    let routes: BTreeSet<_> = routes.collect();
    let unvisited: Vec<_> = routes.difference(&walk.endpoints).collect();
    assert_eq!(unvisited, Vec::<&String>::new(), "no request is sent to these");
    let findings = findings.lock().unwrap();
    assert_eq!(findings.beyond, BTreeSet::new(), "touched without a need");
    assert_eq!(findings.overwritten, BTreeSet::new(), "written, though the needs only read");
    // Were all needs to read, nearly every endpoint that writes would have failed.
    assert!(findings.tight_writes.len() > 50, "{}: {:?}", findings.tight_writes.len(), findings.tight_writes);
    // With a need taken away, the check would have failed: it is no check that always holds.
    assert!(findings.tight.len() * 10 > routes.len() * 9, "{} of {}", findings.tight.len(), routes.len());
}
