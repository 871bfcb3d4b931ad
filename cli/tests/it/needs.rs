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
use samples::Walk;
use serde_json::Value;
use table::Table;
use test_site::Judge;

use crate::site::{ROOT, TABLE, mounted, routes};

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
        "TR" | "TS" => {
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

/// The domains as in `serve`, each call between two looks at the record.
async fn probed(probe: &Probe, table: &Table, directory: &Path, findings: &Arc<Mutex<Findings>>) -> Router {
    let asked = Arc::clone(&probe.record);
    // A query asks once for each endpoint that it calls.
    let admit = Judge::new(Visible::Everything, move |wanted: &(Action, Guarded)| {
        asked.lock().unwrap().wanted.push(wanted.clone());
        true
    });
    let (record, findings) = (Arc::clone(&probe.record), Arc::clone(findings));
    let all = mounted(table, Artifacts::in_directory(directory), Arc::new(admit)).await;
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
    let mut walk = Walk::new(probed(&probe, &table, directory.path(), &findings).await);
    samples::all(&mut walk).await;

    let routes = routes(|_, endpoint| endpoint.permission != Permission::Public);
    let unvisited: Vec<_> = routes.difference(&walk.endpoints).collect();
    assert_eq!(unvisited, Vec::<&String>::new(), "no request is sent to these");
    let findings = findings.lock().unwrap();
    assert_eq!(findings.beyond, BTreeSet::new(), "touched without a need");
    // With a need taken away, the check would have failed: it is no check that always holds.
    assert!(findings.tight.len() * 10 > routes.len() * 9, "{} of {}", findings.tight.len(), routes.len());
}
