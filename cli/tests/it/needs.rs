//! Checks that each endpoint only accesses items that its needs cover, and only writes items that
//! its needs cover with a writing action. Also checks that no need is superfluous.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{AccessCheck, Action, Authorizer, Guard, Permission, Resource, Visibility};
use artifact_store::ArtifactStore;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use embedded_engine::Engine;
use mlflow_api::{ExperimentId, ModelId, RegisteredModelName, ReviewQueueId, RunId, Workspace};
use serde_json::Value;
use table::Table;
use test_site::TestAuthorizer;
use test_site::route_samples::{SAMPLE_USER, SampleClient};

use crate::table_probe::{partitions_of, probed};
use crate::test_server::{ROOT, TABLE, mounted, routes, walker};

/// The record of one call to an endpoint: what the authorizer was asked, which partitions the
/// requests to the table named, and which of them were written to.
#[derive(Clone, Debug, Default)]
struct Record {
    wanted: Vec<AccessCheck>,
    partitions: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl Record {
    /// Records the partitions of a request to the table.
    fn take(&mut self, operation: &str, body: &Value) {
        partitions_of(body, &mut self.partitions);
        match operation {
            // The last three operations occur when a process creates the table because it is
            // missing.
            "GetItem" | "BatchGetItem" | "Query" | "DescribeTable" | "CreateTable" | "UpdateTimeToLive" => {}
            "TransactWriteItems" => {
                // A transaction may contain conditions that only check items.
                let writes = body["TransactItems"].as_array().unwrap().iter();
                writes
                    .filter(|write| write.get("ConditionCheck").is_none())
                    .for_each(|write| partitions_of(write, &mut self.written));
            }
            "PutItem" | "UpdateItem" | "DeleteItem" | "BatchWriteItem" => partitions_of(body, &mut self.written),
            other => panic!("{other} was not expected"),
        }
    }
}

/// Returns the requested partitions that no declared need of the endpoint covers.
fn uncovered(record: &Record) -> Vec<String> {
    record.partitions.iter().filter(|partition| !is_covered(partition, &record.wanted)).cloned().collect()
}

/// Returns the partitions that were written to, although no need with a writing action covers them.
fn unwritable(record: &Record) -> Vec<String> {
    let writing: Vec<_> = record.wanted.iter().filter(|ask| ask.action.writes()).cloned().collect();
    let written = record.written.iter().filter(|partition| !is_covered(partition, &writing));
    // As in MLflow, creating a version from a logged model only requires permission to read the
    // logged model, although its tag that lists the versions is updated.
    let makes_version = writing.iter().any(|ask| ask.action == Action::Create && ask.kind == Resource::ModelVersion);
    let of_logged_model = |partition: &&String| {
        let source: Vec<_> = record.wanted.iter().filter(|ask| ask.kind == Resource::LoggedModel).cloned().collect();
        makes_version && is_covered(partition, &source)
    };
    written.filter(|partition| !of_logged_model(partition)).cloned().collect()
}

fn is_covered(partition: &str, wanted: &[AccessCheck]) -> bool {
    let (kind, rest) = partition.split_once('#').unwrap_or((partition, ""));
    let wants = |guarded: &Guard| wanted.iter().any(|wanted| wanted.guard == *guarded);
    // A list only reads further data of entities that are visible to the caller.
    let lists = |resource| wants_of(wanted, Action::List, &Guard::Workspace(resource));
    let is_in = |guarded: &Guard, experiment: ExperimentId| match guarded {
        Guard::Experiment(wanted) | Guard::Scorer(wanted, _) => *wanted == experiment,
        _ => false,
    };
    let of_experiment = |experiment: Option<ExperimentId>| {
        let of_this = |experiment| wanted.iter().any(|wanted| is_in(&wanted.guard, experiment));
        lists(Resource::Experiment) || lists(Resource::Scorer) || experiment.is_some_and(of_this)
    };
    let of_any_experiment = || wanted.iter().any(|wanted| matches!(wanted.guard, Guard::Experiment(_)));
    match kind {
        "EXP" | "EVALEXP" if of_experiment(ExperimentId::parse(rest).ok()) => true,
        // The index that the indexer maintains of an experiment's runs.
        "IX" => of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok())),
        // An experiment that is being created has no id yet.
        "EXP" => wants_of(wanted, Action::Create, &Guard::Workspace(Resource::Experiment)),
        // A dataset stores the experiments that list it. Deleting the dataset removes it from their
        // lists.
        "EVALEXP" => wanted
            .iter()
            .any(|wanted| wanted.action == Action::Delete && matches!(wanted.guard, Guard::EvaluationDataset(_))),
        "RUN" => of_experiment(RunId::parse(rest).and_then(|run| run.experiment())),
        // The registry's list of the versions of a run. A version that is created from another
        // version or from a logged model gets the run of its source.
        "MVRUN" => {
            let is_of_registry = wanted.iter().any(|wanted| matches!(wanted.guard, Guard::RegisteredModel(_)));
            is_of_registry || lists(Resource::RegisteredModel) || lists(Resource::ModelVersion)
        }
        "MODEL" => of_experiment(ModelId::parse(rest).and_then(|model| model.experiment())),
        // Traces are guarded by their experiments, which their ids do not contain. The index by the
        // client's request id has traces of all experiments.
        "TRACE" | "CLIENT" => of_any_experiment(),
        // Restoring an entity checks whether it is being removed. Deleting an MCP server or a skill
        // writes the row of its removal.
        "REMOVAL" => {
            let is_of_registry = |wanted: &AccessCheck| matches!(wanted.guard, Guard::McpServer(_) | Guard::Skill(_));
            of_any_experiment() || wanted.iter().any(is_of_registry)
        }
        // Also includes the parts of an experiment's datasets.
        "TR" | "TS" | "SPANS" | "DATA" => {
            of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok()))
        }
        "REVIEW" | "REVIEWED" | "ISSUES" | "ISSUEDATA" => of_experiment(ExperimentId::parse(rest).ok()),
        "RQ" => of_experiment(ReviewQueueId::parse(rest).map(|queue| queue.experiment())),
        // The experiment of an issue whose id a client has chosen.
        "ISSUEID" => wanted.iter().any(|wanted| wanted.kind == Resource::Issue),
        "RM" => {
            // The versions of a model that was called `old` are still stored under that name. The
            // need of the request that renames it has the new name.
            let renamed = [["old", "new"], ["before", "after"]].into_iter().find(|names| names.contains(&rest));
            let names = renamed.map_or_else(|| vec![rest], |names| names.to_vec());
            let is_wanted = |name: &&str| wants(&Guard::RegisteredModel(RegisteredModelName::named(name)));
            lists(Resource::RegisteredModel) || lists(Resource::ModelVersion) || names.iter().any(is_wanted)
        }
        // Versions are stored under the id of their server.
        "MCPS" | "MCPV" => {
            let is_server = |wanted: &AccessCheck| matches!(wanted.guard, Guard::McpServer(_));
            // Deleting a workspace moves its servers.
            let of_workspace = |wanted: &AccessCheck| kind == "MCPS" && wanted.kind == Resource::Workspace;
            lists(Resource::McpServer) || wanted.iter().any(|wanted| is_server(wanted) || of_workspace(wanted))
        }
        // The keys of versions contain the id of their skill, but not its name, so any skill
        // counts.
        "SKILLS" | "SKILLV" => {
            let is_skill = |wanted: &AccessCheck| matches!(wanted.guard, Guard::Skill(_));
            let of_workspace = |wanted: &AccessCheck| kind == "SKILLS" && wanted.kind == Resource::Workspace;
            lists(Resource::Skill) || wanted.iter().any(|wanted| is_skill(wanted) || of_workspace(wanted))
        }
        "EVAL" | "EVALKEY" => {
            let of_this = |wanted: &AccessCheck| {
                let creates = wanted.action == Action::Create && wanted.kind == Resource::EvaluationDataset;
                // A search finds datasets by the experiments in the request.
                let finds = wanted.action == Action::Read && wanted.kind == Resource::EvaluationDataset;
                let searches = finds && matches!(wanted.guard, Guard::Experiment(_) | Guard::Workspace(_));
                let is_named = matches!(&wanted.guard, Guard::EvaluationDataset(id) if id.as_str() == rest);
                creates || searches || is_named
            };
            wanted.iter().any(of_this)
        }
        // The directory of the workspace, which has the names and ids of entities that are created,
        // listed, renamed or deleted.
        "WORKSPACE" => !wanted.is_empty(),
        // Settings of the server, which do not belong to any user.
        "CONFIG" => true,
        // Callers may read their own item, and their roles if there are no other needs.
        "USER" if rest == SAMPLE_USER => true,
        "ROLE" if wanted.is_empty() => true,
        // Users and roles. Callers who manage an entity may grant it to others.
        "USER" | "USERS" | "ROLE" | "ROLES" | "COUNTERS" | "SECRETS" => wanted.iter().any(|wanted| {
            matches!(wanted.kind, Resource::User | Resource::Role | Resource::Workspace)
                || wanted.action == Action::Share
        }),
        // Webhooks. Calls of the registry read who subscribes to their events, and write the events.
        // Deleting a workspace removes its webhooks.
        "HOOK" => wanted.iter().any(|wanted| {
            matches!(wanted.kind, Resource::Webhook | Resource::Workspace)
                || matches!(wanted.guard, Guard::RegisteredModel(_))
        }),
        // The list of all workspaces. Only those in which the caller has a role are shown.
        "WORKSPACES" => wanted.iter().any(|wanted| wanted.kind == Resource::Workspace),
        _ => false,
    }
}

fn wants_of(wanted: &[AccessCheck], action: Action, guarded: &Guard) -> bool {
    wanted.iter().any(|wanted| wanted.action == action && wanted.guard == *guarded)
}

/// The findings of all calls.
#[derive(Default)]
struct Findings {
    calls: usize,
    beyond: BTreeSet<String>,
    /// Partitions that were written to without a need that writes.
    overwritten: BTreeSet<String>,
    /// Endpoints with a call that would fail this check if all of its needs only read.
    tight_writes: BTreeSet<String>,
    /// Endpoints with a call that would fail the check if one of its needs were missing.
    tight: BTreeSet<String>,
}

/// Mounts the domains as in `serve`, with an authorizer that allows and records every request. Each
/// call is checked after its response.
async fn recorded(
    record: &Arc<Mutex<Record>>,
    table: &Table,
    directory: &Path,
    findings: &Arc<Mutex<Findings>>,
) -> Router {
    let (record, findings) = (Arc::clone(record), Arc::clone(findings));
    let wanted = Arc::clone(&record);
    // A GraphQL query is authorized once per endpoint that it calls.
    let admit = TestAuthorizer::of_asks(Visibility::Everything, move |asked| {
        wanted.lock().unwrap().wanted.push(asked.clone());
        true
    });
    let admit: Arc<dyn Authorizer> = Arc::new(admit.knowing(walker()));
    let all = mounted(table, ArtifactStore::in_directory(directory), admit).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_touches_what_its_needs_named_and_nothing_else() {
    let engine = Engine::memory().unwrap();
    Table::new(engine.client(), TABLE).create_if_missing().await.unwrap();
    let record = Arc::<Mutex<Record>>::default();
    let table = probed(&engine, {
        let record = Arc::clone(&record);
        move |operation, body| record.lock().unwrap().take(operation, body)
    });
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let findings = Arc::<Mutex<Findings>>::default();
    let directory = tempfile::tempdir().unwrap();
    let mut walk = SampleClient::new(recorded(&record, &table, directory.path(), &findings).await);
    test_site::route_samples::all(&mut walk).await;

    // The artifact proxy does not read the table. The tests of its function check its needs.
    let is_guarded = |permission| !matches!(permission, Permission::Open | Permission::SignedIn);
    let routes = routes(|_, endpoint| is_guarded(endpoint.permission));
    let unvisited: Vec<_> = routes.difference(&walk.endpoints).collect();
    assert_eq!(unvisited, Vec::<&String>::new(), "endpoints without a request in the walk");
    let findings = findings.lock().unwrap();
    assert_eq!(findings.beyond, BTreeSet::new(), "accessed without a need");
    assert_eq!(findings.overwritten, BTreeSet::new(), "written, although the needs only read");
    // If all needs only read, nearly every endpoint that writes would fail the check. This shows
    // that the check is effective.
    assert!(findings.tight_writes.len() > 50, "{}: {:?}", findings.tight_writes.len(), findings.tight_writes);
    // If one of its needs were removed, nearly every endpoint would fail the check. This shows that
    // the check is effective.
    assert!(findings.tight.len() * 10 > routes.len() * 9, "{} of {}", findings.tight.len(), routes.len());
}
