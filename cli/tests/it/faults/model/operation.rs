//! The operations of clients: their kinds, their random generation, and their requests.

use std::collections::BTreeMap;

use embedded_engine::faults::InjectedFault;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_site::ROOT;

use super::traces;

/// Ids assigned by the server, by the names that the model gives to entities: `e0` is an
/// experiment, `r0` a run, `m0` a logged model, `d0` an evaluation dataset, and `d0/1` the record
/// of that dataset with inputs 1.
pub(super) type Ids = BTreeMap<String, String>;

/// Kind of an operation. `of`, `key` and `value` of [`Op`] are its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ExperimentCreate,
    ExperimentRename,
    ExperimentDelete,
    ExperimentRestore,
    ExperimentTag,
    ExperimentUntag,
    RunCreate,
    RunFinish,
    RunDelete,
    RunRestore,
    RunMetric,
    RunMetrics,
    RunParam,
    RunTag,
    RunUntag,
    RunBatch,
    ModelCreate,
    ModelReady,
    ModelDelete,
    ModelParam,
    ModelTag,
    ModelUntag,
    RegisteredCreate,
    RegisteredRename,
    RegisteredDelete,
    RegisteredTag,
    RegisteredUntag,
    VersionCreate,
    VersionDelete,
    VersionTag,
    VersionUntag,
    VersionStage,
    AliasSet,
    AliasDelete,
    DatasetCreate,
    DatasetDelete,
    DatasetTag,
    DatasetUntag,
    DatasetMerge,
    DatasetDeleteRecord,
    DatasetAdd,
    DatasetRemove,
    ScorerRegister,
    ScorerDelete,
    ScorerDeleteAll,
    TraceExport,
    TraceStart,
    TraceTag,
    TraceUntag,
    TraceAssess,
    TraceReassess,
    TraceUnassess,
    TraceLink,
    TraceDelete,
    TraceDeleteUntil,
    TraceKeep,
    TraceUnkeep,
}

use Kind::*;

/// The kinds of operations in four groups, each with its weight. Creations and logging have a
/// higher weight, so that there is something to delete.
const KINDS: [(u32, &[Kind]); 4] = [
    (
        6,
        &[
            ExperimentCreate,
            RunCreate,
            RunCreate,
            ModelCreate,
            RegisteredCreate,
            VersionCreate,
            DatasetCreate,
            ScorerRegister,
            TraceExport,
            TraceExport,
            TraceExport,
            TraceStart,
        ],
    ),
    (
        6,
        &[
            RunMetric,
            RunMetrics,
            RunParam,
            RunTag,
            RunBatch,
            DatasetMerge,
            ModelParam,
            ModelTag,
            VersionTag,
            AliasSet,
            TraceTag,
            TraceAssess,
            TraceReassess,
            TraceLink,
        ],
    ),
    (
        4,
        &[
            RunFinish,
            RunUntag,
            ModelReady,
            ModelUntag,
            ExperimentTag,
            ExperimentUntag,
            RegisteredTag,
            RegisteredUntag,
            VersionUntag,
            VersionStage,
            AliasDelete,
            DatasetTag,
            DatasetUntag,
            DatasetAdd,
            DatasetRemove,
            ExperimentRename,
            RegisteredRename,
            RunRestore,
            TraceUntag,
            TraceUnassess,
        ],
    ),
    (
        2,
        &[
            ExperimentDelete,
            ExperimentRestore,
            RunDelete,
            ModelDelete,
            RegisteredDelete,
            VersionDelete,
            DatasetDelete,
            DatasetDeleteRecord,
            ScorerDelete,
            ScorerDeleteAll,
            TraceDelete,
            TraceDeleteUntil,
            TraceKeep,
            TraceUnkeep,
        ],
    ),
];

/// An operation of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    /// Number of the entity. There are three entities of each kind.
    pub(super) of: u8,
    /// Number of the param, tag, metric or version that the operation concerns, or of another
    /// entity that it refers to.
    pub(super) key: u8,
    pub(super) value: u8,
}

/// Fault in an operation's requests to the table: `calls` requests fail, starting with the `nth`
/// one. With `stops`, the process ends there, and the client gets no response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) trouble: InjectedFault,
    pub(super) nth: u64,
    pub(super) calls: u64,
    pub(super) stops: bool,
}

/// Initial operations, which create entities to work on.
pub(super) const BEGINNING: [Op; 8] = {
    const fn op(kind: Kind, of: u8) -> Op {
        Op { kind, of, key: 0, value: 0 }
    }
    [
        op(ExperimentCreate, 0),
        op(ExperimentCreate, 1),
        op(RunCreate, 0),
        op(RunCreate, 1),
        op(ModelCreate, 0),
        op(RegisteredCreate, 0),
        op(VersionCreate, 0),
        op(DatasetCreate, 0),
    ]
};

/// A step of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Concurrent calls of clients, each from a process of its own.
    Calls(Vec<(Op, Option<Fault>)>),
    /// A client reads everything.
    Look,
    /// A client searches runs, with a filter that an index may serve.
    Search(u8),
    /// A client searches traces.
    SearchTraces(u8),
    /// The indexer processes the stream. If a fault is given, it first runs with the fault, and
    /// then without.
    Index(Option<Fault>),
    /// Deleted entities are permanently removed. If a fault is given, the removal runs first with
    /// the fault, and then without.
    Remove(Option<Fault>),
    /// An operator sets the retention of traces, or removes the setting.
    Policy(Option<u8>),
    /// Traces past their retention are removed. If a fault is given, the removal runs first with
    /// the fault, and then without.
    Expire(Option<Fault>),
    /// Time passes, and a fresh indexer checks postponed runs.
    Tick,
    /// The indexer completes all its work, including the packing of traces.
    Pack,
}

fn op() -> impl Strategy<Value = Op> {
    let kinds = KINDS.map(|(weight, kinds)| (weight, prop::sample::select(kinds).boxed()));
    (prop::strategy::Union::new_weighted(kinds.into()), 0..3_u8, 0..3_u8, 0..4_u8)
        .prop_map(|(kind, of, key, value)| Op { kind, of, key, value })
}

/// Generates a fault at one of the first `most` requests.
fn fault(most: u64) -> impl Strategy<Value = Option<Fault>> {
    use InjectedFault::{AnswerLost, Conflict, Disconnected, Halved, Throttled};
    let troubles = vec![AnswerLost, AnswerLost, Throttled, Disconnected, Conflict, Halved];
    let fault = (
        prop::sample::select(troubles),
        1..=most,
        prop::sample::select(vec![1, 1, 2, u64::MAX]),
        prop::bool::weighted(0.2),
    );
    let fault = fault.prop_map(|(trouble, nth, calls, stops)| {
        if stops {
            Fault { trouble: Disconnected, nth, calls: u64::MAX, stops }
        } else {
            Fault { trouble, nth, calls, stops }
        }
    });
    prop::option::weighted(0.4, fault)
}

/// Generates a sequence of steps.
pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => prop::collection::vec((op(), fault(5)), 1..=3).prop_map(Step::Calls),
        1 => Just(Step::Look),
        3 => (0..5_u8).prop_map(Step::Search),
        2 => (0..traces::KINDS_OF_SEARCHES).prop_map(Step::SearchTraces),
        2 => fault(25).prop_map(Step::Index),
        1 => fault(5).prop_map(Step::Remove),
        1 => prop::option::of(0..4_u8).prop_map(Step::Policy),
        1 => fault(5).prop_map(Step::Expire),
        1 => Just(Step::Tick),
        2 => Just(Step::Pack),
    ];
    prop::collection::vec(step, 1..60)
}

/// Returns the text for a value. One of the texts is too long for an entity's own item.
pub(super) fn word(value: u8) -> String {
    if value == 3 { "x".repeat(1_100) } else { format!("v{value}") }
}

const STAGES: [&str; 4] = ["None", "Staging", "Production", "Archived"];

/// Returns the stage for a value.
pub(super) fn stage(value: u8) -> &'static str {
    STAGES[usize::from(value) % STAGES.len()]
}

/// Returns the points of a metric that are logged together: enough for a segment.
pub(super) fn points(value: u8) -> impl Iterator<Item = (i64, i64)> {
    (0..12).map(move |at| (i64::from(value) * 6 + at, at))
}

fn point(key: &str, (step, value): (i64, i64)) -> Value {
    json!({ "key": key, "value": value, "timestamp": step, "step": step })
}

impl Op {
    /// Returns whether a client must not repeat the operation without knowing whether it took
    /// effect.
    pub(super) fn is_creation(self) -> bool {
        matches!(
            self.kind,
            ExperimentCreate
                | RunCreate
                | ModelCreate
                | RegisteredCreate
                | VersionCreate
                | DatasetCreate
                | ScorerRegister
        )
    }

    /// Returns whether the operation removes a tag.
    pub(super) fn is_untagging(self) -> bool {
        matches!(
            self.kind,
            ExperimentUntag
                | RunUntag
                | ModelUntag
                | RegisteredUntag
                | VersionUntag
                | DatasetUntag
                | TraceUntag
                | TraceUnkeep
        )
    }

    /// Returns whether the operation concerns traces.
    pub(super) fn is_of_traces(self) -> bool {
        matches!(
            self.kind,
            TraceExport
                | TraceStart
                | TraceTag
                | TraceUntag
                | TraceAssess
                | TraceReassess
                | TraceUnassess
                | TraceLink
                | TraceDelete
                | TraceDeleteUntil
                | TraceKeep
                | TraceUnkeep
        )
    }

    /// Returns whether the operation sets the retention of traces.
    pub(super) fn is_of_retention(self) -> bool {
        matches!(self.kind, TraceKeep | TraceUnkeep)
    }

    /// Returns whether the operation changes several traces one after the other, so that concurrent
    /// changes have no defined order.
    pub(super) fn is_of_several_traces(self) -> bool {
        let is_of_all = self.is_of_retention() || matches!(self.kind, TraceDelete | TraceDeleteUntil);
        is_of_all || self.kind == TraceExport && self.value == 3
    }

    /// Returns method, path and body, or `None` if a required id is not known.
    #[expect(clippy::too_many_lines, reason = "a table with a row per operation")]
    pub(super) fn request(self, ids: &Ids) -> Option<(&'static str, String, Value)> {
        let Self { of, key, value, .. } = self;
        let id = |kind: char, slot: u8| ids.get(&format!("{kind}{slot}")).cloned();
        let v2 = |path: &str| format!("/api/2.0/mlflow/{path}");
        let post = |path: &str, body: Value| Some(("POST", v2(path), body));
        let entry = json!({ "key": format!("k{key}"), "value": word(value) });
        let with = |name: &str, id: Value, mut body: Value| {
            body[name] = id;
            body
        };
        let name = format!("g{of}");
        let version = (key + 1).to_string();
        let dataset = |rest: &str| Some(format!("/api/3.0/mlflow/datasets/{}{rest}", id('d', of)?));
        let model = |rest: &str| Some(v2(&format!("logged-models/{}{rest}", id('m', of)?)));
        let scorer = || Some(json!({ "experiment_id": id('e', of)?, "name": format!("s{key}") }));
        let experiments = || Some(json!({ "experiment_ids": [id('e', key)?] }));
        match self.kind {
            ExperimentCreate => post(
                "experiments/create",
                json!({ "name": format!("n{of}"), "tags": [{ "key": "slot", "value": format!("e{of}") }] }),
            ),
            ExperimentRename => post(
                "experiments/update",
                json!({ "experiment_id": id('e', of)?, "new_name": format!("n{}", key + value) }),
            ),
            ExperimentDelete => post("experiments/delete", json!({ "experiment_id": id('e', of)? })),
            ExperimentRestore => post("experiments/restore", json!({ "experiment_id": id('e', of)? })),
            ExperimentTag => post("experiments/set-experiment-tag", with("experiment_id", id('e', of)?.into(), entry)),
            ExperimentUntag => post(
                "experiments/delete-experiment-tag",
                json!({ "experiment_id": id('e', of)?, "key": format!("k{key}") }),
            ),
            RunCreate => {
                let tags = if value == 3 { json!([entry]) } else { json!([]) };
                let body = json!({ "experiment_id": id('e', key)?, "run_name": format!("r{of}"), "start_time": of, "tags": tags });
                post("runs/create", body)
            }
            RunFinish => post("runs/update", json!({ "run_id": id('r', of)?, "status": "FINISHED", "end_time": 9 })),
            RunDelete => post("runs/delete", json!({ "run_id": id('r', of)? })),
            RunRestore => post("runs/restore", json!({ "run_id": id('r', of)? })),
            RunMetric => {
                let point = point(&format!("k{key}"), (i64::from(value), i64::from(value)));
                post("runs/log-metric", with("run_id", id('r', of)?.into(), point))
            }
            RunMetrics => {
                let metrics: Vec<_> = points(value).map(|at| point(&format!("k{key}"), at)).collect();
                post("runs/log-batch", json!({ "run_id": id('r', of)?, "metrics": metrics }))
            }
            RunParam => post("runs/log-parameter", with("run_id", id('r', of)?.into(), entry)),
            RunTag => post("runs/set-tag", with("run_id", id('r', of)?.into(), entry)),
            RunUntag => post("runs/delete-tag", json!({ "run_id": id('r', of)?, "key": format!("k{key}") })),
            RunBatch => {
                let metrics = ["k0", "k1"].map(|metric| point(metric, (i64::from(value), i64::from(key))));
                post(
                    "runs/log-batch",
                    json!({ "run_id": id('r', of)?, "metrics": metrics, "params": [entry], "tags": [entry] }),
                )
            }
            ModelCreate => post("logged-models", json!({ "experiment_id": id('e', key)?, "name": format!("m{of}") })),
            ModelReady => {
                Some(("PATCH", model("")?, json!({ "model_id": id('m', of)?, "status": "LOGGED_MODEL_READY" })))
            }
            ModelDelete => Some(("DELETE", model("")?, json!({}))),
            ModelParam => Some(("POST", model("/params")?, json!({ "model_id": id('m', of)?, "params": [entry] }))),
            ModelTag => Some(("PATCH", model("/tags")?, json!({ "tags": [entry] }))),
            ModelUntag => Some(("DELETE", model(&format!("/tags/k{key}"))?, json!({}))),
            RegisteredCreate => post("registered-models/create", json!({ "name": name })),
            RegisteredRename => {
                post("registered-models/rename", json!({ "name": name, "new_name": format!("g{key}") }))
            }
            RegisteredDelete => Some(("DELETE", v2("registered-models/delete"), json!({ "name": name }))),
            RegisteredTag => post("registered-models/set-tag", with("name", name.into(), entry)),
            RegisteredUntag => {
                let body = json!({ "name": name, "key": format!("k{key}") });
                Some(("DELETE", v2("registered-models/delete-tag"), body))
            }
            VersionCreate => post("model-versions/create", json!({ "name": name, "source": format!("{ROOT}/m") })),
            VersionDelete => Some(("DELETE", v2("model-versions/delete"), json!({ "name": name, "version": version }))),
            VersionTag => {
                let body = json!({ "name": name, "version": version, "key": "k0", "value": word(value) });
                post("model-versions/set-tag", body)
            }
            VersionUntag => {
                let body = json!({ "name": name, "version": version, "key": "k0" });
                Some(("DELETE", v2("model-versions/delete-tag"), body))
            }
            VersionStage => {
                let archive = matches!(stage(value), "Staging" | "Production");
                let body = json!({ "name": name, "version": version, "stage": stage(value), "archive_existing_versions": archive });
                post("model-versions/transition-stage", body)
            }
            AliasSet => {
                let body = json!({ "name": name, "alias": format!("a{}", value % 2), "version": version });
                post("registered-models/alias", body)
            }
            AliasDelete => {
                let body = json!({ "name": name, "alias": format!("a{}", value % 2) });
                Some(("DELETE", v2("registered-models/alias"), body))
            }
            DatasetCreate => {
                Some(("POST", "/api/3.0/mlflow/datasets/create".to_owned(), json!({ "name": format!("d{of}") })))
            }
            DatasetDelete => Some(("DELETE", dataset("")?, json!({}))),
            DatasetTag => {
                let tags = json!({ format!("k{key}"): word(value) }).to_string();
                Some(("PATCH", dataset("/tags")?, json!({ "tags": tags })))
            }
            DatasetUntag => Some(("DELETE", dataset(&format!("/tags/k{key}"))?, json!({}))),
            DatasetMerge => {
                let records = [key, (key + 1) % 3].map(|n| json!({ "inputs": { "n": n }, "outputs": word(value) }));
                Some(("POST", dataset("/records")?, json!({ "records": json!(records).to_string() })))
            }
            DatasetDeleteRecord => {
                let record = ids.get(&format!("d{of}/{key}"))?;
                Some(("DELETE", dataset("/records")?, json!({ "dataset_record_ids": [record] })))
            }
            DatasetAdd => Some(("POST", dataset("/add-experiments")?, experiments()?)),
            DatasetRemove => Some(("POST", dataset("/remove-experiments")?, experiments()?)),
            ScorerRegister => {
                let serialized = json!({ "instructions_judge_pydantic_data": {}, "x": word(value) }).to_string();
                let body = with("serialized_scorer", serialized.into(), scorer()?);
                Some(("POST", "/api/3.0/mlflow/scorers/register".to_owned(), body))
            }
            ScorerDelete => {
                let body = with("version", (value + 1).into(), scorer()?);
                Some(("DELETE", "/api/3.0/mlflow/scorers/delete".to_owned(), body))
            }
            ScorerDeleteAll => Some(("DELETE", "/api/3.0/mlflow/scorers/delete".to_owned(), scorer()?)),
            _ => traces::request(self, ids),
        }
    }
}
