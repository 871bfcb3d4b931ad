//! What each endpoint touches in the table is within what its needs named; and none of its needs is idle.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{Action, Guarded, Permission, Resource, Visible};
use artifact_store::Artifacts;
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
use service::{Frame, Route};
use table::Table;
use test_site::Judge;

use crate::site::{ROOT, TABLE, Walk};
use crate::writes;

/// What one call to an endpoint asked to be allowed, and which partitions its requests to the table named.
#[derive(Clone, Debug, Default)]
struct Record {
    wanted: Vec<(Action, Guarded)>,
    partitions: BTreeSet<String>,
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
        partitions_of(&body, &mut self.record.lock().unwrap().partitions);
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

fn is_covered(partition: &str, wanted: &[(Action, Guarded)]) -> bool {
    let (kind, rest) = partition.split_once('#').unwrap_or((partition, ""));
    let wants = |guarded: &Guarded| wanted.iter().any(|(_, wanted)| wanted == guarded);
    // What is listed is filtered by what may be seen, before it is read further.
    let lists = |resource| wanted.contains(&(Action::List, Guarded::Workspace(resource)));
    let of_experiment = |experiment: Option<ExperimentId>| {
        lists(Resource::Experiment) || experiment.is_some_and(|experiment| wants(&Guarded::Experiment(experiment)))
    };
    match kind {
        "EXP" | "EVALEXP" if of_experiment(ExperimentId::parse(rest).ok()) => true,
        // What the indexer derives from an experiment's runs.
        "IX" => of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok())),
        // One that is only now created has no id before.
        "EXP" => wanted.contains(&(Action::Create, Guarded::Workspace(Resource::Experiment))),
        // A dataset names the experiments that list it: deleting it takes it off their lists.
        "EVALEXP" => wanted
            .iter()
            .any(|(action, wanted)| *action == Action::Delete && matches!(wanted, Guarded::EvaluationDataset(_))),
        "RUN" => {
            // The registry keeps its list of a run's versions there. A version that is made from another has that one's run.
            let is_of_registry = wanted.iter().any(|(_, wanted)| matches!(wanted, Guarded::RegisteredModel(_)));
            let of_run = of_experiment(RunId::parse(rest).and_then(|run| run.experiment()));
            of_run || is_of_registry || lists(Resource::RegisteredModel)
        }
        "MODEL" => of_experiment(ModelId::parse(rest).and_then(|model| model.experiment())),
        // Traces are guarded by their experiments, which their ids do not say; an index has those of a client's request by experiment.
        "TRACE" | "CLIENT" => wanted.iter().any(|(_, wanted)| matches!(wanted, Guarded::Experiment(_))),
        "TR" | "TS" | "SPANS" => {
            of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok()))
        }
        // Parts of a dataset of an experiment, named by a hash.
        "DATA" => wanted.iter().any(|(_, wanted)| matches!(wanted, Guarded::Experiment(_))),
        "RM" => {
            // A model that was called `old` has its versions there still.
            let names = if rest == "old" { vec!["old", "new"] } else { vec![rest] };
            let is_wanted = |name: &&str| wants(&Guarded::RegisteredModel(RegisteredModelName::named(name)));
            lists(Resource::RegisteredModel) || names.iter().any(is_wanted)
        }
        "EVAL" | "EVALKEY" => {
            let of_this = |wanted: &Guarded| matches!(wanted, Guarded::EvaluationDataset(id) if id.as_str() == rest);
            let creates = wanted.contains(&(Action::Create, Guarded::Workspace(Resource::EvaluationDataset)));
            creates || lists(Resource::EvaluationDataset) || wanted.iter().any(|(_, wanted)| of_this(wanted))
        }
        // The directory of the workspace: names and ids of what is created, listed, renamed or deleted in it.
        "WORKSPACE" => !wanted.is_empty(),
        // Settings of the server, of nobody in particular.
        "CONFIG" => true,
        // Who restores something looks whether it is being removed.
        "REMOVAL" => wanted.iter().any(|(_, wanted)| matches!(wanted, Guarded::Experiment(_))),
        _ => false,
    }
}

/// What was found of all calls.
#[derive(Default)]
struct Findings {
    calls: usize,
    beyond: BTreeSet<String>,
    /// Endpoints of which one call failed the check when a need was taken away.
    tight: BTreeSet<String>,
}

/// The functions as in `serve`, each call between two looks at the record.
fn probed(probe: &Probe, table: &Table, directory: &Path, findings: &Arc<Mutex<Findings>>) -> Router {
    fn frame<S: service::Store>(store: S, probe: &Probe) -> Frame<S> {
        let record = Arc::clone(&probe.record);
        // A query asks once for each endpoint that it calls.
        let admit = Judge::new(Visible::Everything, move |wanted: &(Action, Guarded)| {
            record.lock().unwrap().wanted.push(wanted.clone());
            true
        });
        Frame::guarded(store, Arc::new(admit))
    }
    let files = Artifacts::in_directory(directory);
    let tracking = frame(tracking::store::Store::new(table.clone(), ROOT).with_artifacts(files.clone()), probe);
    let registry = frame(registry::store::Store::new(table.clone(), ROOT).with_artifacts(files.clone()), probe);
    let evaluation = frame(evaluation::store::Store::new(table.clone()), probe);
    let traces = traces::store::Store::new(table.clone(), files.clone());
    let traces = frame(traces, probe);
    let (record, findings) = (Arc::clone(&probe.record), Arc::clone(findings));
    let artifacts = frame(artifacts::store::Store::new(table.clone(), files), probe);
    let graphql = graphql::Store::new(table.clone(), &tracking, &registry).unwrap().with_artifacts(&artifacts);
    let others = [
        service::router(evaluation::routes(), &evaluation),
        service::router(registry::routes(), &registry),
        service::router(traces::routes(), &traces),
        service::router(artifacts::routes(), &artifacts),
        service::router(graphql::routes(), &frame(graphql, probe)),
    ];
    let all = service::joined(service::router(tracking::routes(), &tracking), others);
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
            for (_, removed) in &record.wanted {
                let mut fewer = record.clone();
                fewer.wanted.retain(|(_, wanted)| wanted != removed);
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

fn guarded<S: service::Store>(routes: Vec<Route<S>>) -> impl Iterator<Item = String> {
    let guarded = routes.into_iter().filter(|route| route.permission != Permission::Public);
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
    writes::of_tracking(&mut walk).await;
    writes::of_evaluation(&mut walk).await;
    writes::of_traces(&mut walk).await;
    writes::of_the_registry(&mut walk).await;
    reads(&mut walk).await;
    queries(&mut walk).await;
    artifacts_of_a_run(&mut walk).await;
    files_of_a_model(&mut walk, directory.path()).await;

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
    // With a need taken away, the check would have failed: it is no check that always holds.
    assert!(findings.tight.len() * 10 > routes.len() * 9, "{} of {}", findings.tight.len(), routes.len());
}
