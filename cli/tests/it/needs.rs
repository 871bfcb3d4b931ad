//! Each endpoint only touches data of the table that its needs name, and only writes data of needs
//! that write. None of its needs is idle.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use access::{Action, Ask, Authorizer, Guarded, Permission, Resource, Visible};
use artifact_store::Artifacts;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use embedded_engine::Engine;
use mlflow_api::{ExperimentId, ModelId, RegisteredModelName, RunId, Workspace};
use samples::{WALKER, Walk};
use serde_json::Value;
use table::Table;
use test_site::Judge;

use crate::probe::{partitions_of, probed};
use crate::site::{ROOT, TABLE, mounted, routes, walker};

/// What one call to an endpoint asked to be allowed, which partitions its requests to the table named, and to which of them it wrote.
#[derive(Clone, Debug, Default)]
struct Record {
    wanted: Vec<Ask>,
    partitions: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl Record {
    /// Takes down what a request to the table names.
    fn take(&mut self, operation: &str, body: &Value) {
        partitions_of(body, &mut self.partitions);
        match operation {
            // The last three make a table that is not there.
            "GetItem" | "BatchGetItem" | "Query" | "DescribeTable" | "CreateTable" | "UpdateTimeToLive" => {}
            "TransactWriteItems" => {
                // A transaction may only look whether something is there.
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

/// Those of the partitions that nothing wanted covers.
fn uncovered(record: &Record) -> Vec<String> {
    record.partitions.iter().filter(|partition| !is_covered(partition, &record.wanted)).cloned().collect()
}

/// The partitions that were written to, though no wanted action on them writes.
fn unwritable(record: &Record) -> Vec<String> {
    let writing: Vec<_> = record.wanted.iter().filter(|ask| ask.action.writes()).cloned().collect();
    let written = record.written.iter().filter(|partition| !is_covered(partition, &writing));
    // As in MLflow, making a version of a logged model only needs the right to read that: the
    // version is listed in a tag of it.
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
    // Lists are filtered by the visible entities, before more is read of them.
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
        "RUN" => of_experiment(RunId::parse(rest).and_then(|run| run.experiment())),
        // The registry's list of a run's versions. A version that is made from another, or from a logged model, has that one's run.
        "MVRUN" => {
            let is_of_registry = wanted.iter().any(|wanted| matches!(wanted.guard, Guarded::RegisteredModel(_)));
            is_of_registry || lists(Resource::RegisteredModel) || lists(Resource::ModelVersion)
        }
        "MODEL" => of_experiment(ModelId::parse(rest).and_then(|model| model.experiment())),
        // Traces are guarded by their experiments, which their ids do not name; an index has those
        // of a client's request by experiment. Restoring an entity checks whether it is being
        // removed.
        "TRACE" | "CLIENT" | "REMOVAL" => of_any_experiment(),
        // Also the parts of its datasets.
        "TR" | "TS" | "SPANS" | "DATA" => {
            of_experiment(rest.split('#').next().and_then(|experiment| ExperimentId::parse(experiment).ok()))
        }
        "RM" => {
            // A model that was called `old` still has its versions there. The request that renames
            // it names the new name.
            let renamed = [["old", "new"], ["before", "after"]].into_iter().find(|names| names.contains(&rest));
            let names = renamed.map_or_else(|| vec![rest], |names| names.to_vec());
            let is_wanted = |name: &&str| wants(&Guarded::RegisteredModel(RegisteredModelName::named(name)));
            lists(Resource::RegisteredModel) || lists(Resource::ModelVersion) || names.iter().any(is_wanted)
        }
        "EVAL" | "EVALKEY" => {
            let of_this = |wanted: &Ask| {
                let creates = wanted.action == Action::Create && wanted.kind == Resource::EvaluationDataset;
                // A search finds datasets by the experiments that it names.
                let finds = wanted.action == Action::Read && wanted.kind == Resource::EvaluationDataset;
                let searches = finds && matches!(wanted.guard, Guarded::Experiment(_) | Guarded::Workspace(_));
                let is_named = matches!(&wanted.guard, Guarded::EvaluationDataset(id) if id.as_str() == rest);
                creates || searches || is_named
            };
            wanted.iter().any(of_this)
        }
        // The directory of the workspace: names and ids of entities that are created, listed,
        // renamed or deleted in it.
        "WORKSPACE" => !wanted.is_empty(),
        // Settings of the server, of nobody in particular.
        "CONFIG" => true,
        // A caller may read his own item, and his roles where nothing else is wanted.
        "USER" if rest == WALKER => true,
        "ROLE" if wanted.is_empty() => true,
        // Users and roles. A caller who manages something may grant it.
        "USER" | "USERS" | "ROLE" | "ROLES" | "COUNTERS" | "SECRETS" => wanted.iter().any(|wanted| {
            matches!(wanted.kind, Resource::User | Resource::Role | Resource::Workspace)
                || wanted.action == Action::Share
        }),
        // The list of all workspaces; it shows the ones in which the caller has a role.
        "WORKSPACES" => wanted.iter().any(|wanted| wanted.kind == Resource::Workspace),
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
    /// Endpoints with a call that failed this check when its needs were reduced to reading.
    tight_writes: BTreeSet<String>,
    /// Endpoints with a call that failed the check when a need was taken away.
    tight: BTreeSet<String>,
}

/// The domains as in `serve`, each call between two looks at the record, which is also kept in the place of the authorizer: that admits everybody.
async fn recorded(
    record: &Arc<Mutex<Record>>,
    table: &Table,
    directory: &Path,
    findings: &Arc<Mutex<Findings>>,
) -> Router {
    let (record, findings) = (Arc::clone(record), Arc::clone(findings));
    let wanted = Arc::clone(&record);
    // A query asks once for each endpoint that it calls.
    let admit = Judge::of_asks(Visible::Everything, move |asked| {
        wanted.lock().unwrap().wanted.push(asked.clone());
        true
    });
    let admit: Arc<dyn Authorizer> = Arc::new(admit.knowing(walker()));
    let all = mounted(table, Artifacts::in_directory(directory), admit).await;
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
    let mut walk = Walk::new(recorded(&record, &table, directory.path(), &findings).await);
    samples::all(&mut walk).await;

    // The proxy reads nothing of the table: the tests of its function hold its endpoints against what callers may do.
    let is_guarded = |permission| !matches!(permission, Permission::Open | Permission::SignedIn);
    let routes = routes(|_, endpoint| is_guarded(endpoint.permission));
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
