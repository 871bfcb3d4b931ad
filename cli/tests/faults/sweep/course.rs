//! A write in one kind of trouble, and what must be true then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use embedded_engine::faults::Trouble;
use key_schema::rows::RowDescription;
use serde_json::Value;
use table::Table;
use test_site::{Answer, Api, ROOT, Site, key_of};

use super::same::{Known, difference};
use super::view;

/// As short as it can be: a deletion waits for it.
pub(crate) const LEASE: Duration = Duration::from_millis(2);

/// Writes of several parts, of which each is whole by itself, as in MLflow: a client that has no answer may see some of them.
const IN_PARTS: [&str; 7] = [
    "/runs/log-batch",
    "/runs/log-metric",
    "/runs/log-model",
    "/records",
    "/v1/traces",
    "/traces/delete-traces",
    "/traces/link-to-run",
];

/// Creations are not repeated where they may have happened (`docs/adr/0017-creations.md`).
const CREATIONS: [&str; 8] = [
    "/experiments/create",
    "/runs/create",
    "/mlflow/logged-models",
    "/datasets/create",
    "/scorers/register",
    "/registered-models/create",
    "/model-versions/create",
    // Of an old client, whose trace gets an id here.
    "/api/2.0/mlflow/traces",
];

/// Rows that a write may leave behind that was given up, by its path: without the item that names them, nobody is shown them.
const LEFT_OVER: [(&str, &str); 14] = [
    // The same points twice, in two tails, are read once.
    ("/runs/log-batch", "MetricJournal"),
    ("/runs/log-metric", "MetricJournal"),
    ("/runs/log-batch", "JournalCall"),
    ("/runs/log-metric", "JournalCall"),
    ("/runs/create", "RunTag"),
    ("/logged-models", "LoggedModelParam"),
    ("/datasets/create", "EvaluationDatasetTag"),
    ("/datasets/create", "ExperimentEvaluationDataset"),
    // The indexer clears up after a deleted dataset, but not in the lists of experiments beyond the first hundred.
    ("/datasets/NEW", "ExperimentEvaluationDataset"),
    ("/records", "EvaluationPart"),
    // It stands for nothing.
    ("/api/2.0/mlflow/traces", "TraceMark"),
    // Who deletes a model again finishes it, unless it was renamed.
    ("/registered-models/delete", "ModelHome"),
    ("/registered-models/delete", "ModelTag"),
    ("/registered-models/delete", "ModelVersion"),
];

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: String,
}

impl Call {
    async fn send(&self, api: &Api) -> Answer {
        api.call_at(&self.method, &self.path, self.body.clone()).await
    }

    pub(super) fn is_read(&self) -> bool {
        self.method == "GET"
    }

    fn is_creation(&self) -> bool {
        self.method == "POST" && CREATIONS.iter().any(|path| self.path.ends_with(path))
    }

    fn is_in_parts(&self) -> bool {
        IN_PARTS.iter().any(|path| self.path.ends_with(path))
    }
}

/// What goes wrong, and where.
#[derive(Clone, Copy, Debug)]
pub(super) enum Course {
    /// From this request on nothing is sent, and the client gets no answer.
    CutOff(u64),
    /// This request, and as many as this in all, meet a trouble.
    Troubled(Trouble, u64, u64),
}

impl Course {
    /// All of a write that makes so many requests, batches among them or not. Servers make two attempts at each.
    fn all(requests: u64, has_batches: bool) -> Vec<Self> {
        let at = |nth| {
            let troubles = [
                (Trouble::AnswerLost, 1),
                (Trouble::AnswerLost, 2),
                (Trouble::AnswerLost, u64::MAX),
                (Trouble::Throttled, 1),
                (Trouble::Throttled, 2),
                (Trouble::Conflict, 1),
                (Trouble::Halved, 1),
            ];
            let troubles = troubles.into_iter().filter(move |(trouble, _)| has_batches || *trouble != Trouble::Halved);
            let met = troubles.map(move |(trouble, calls)| Self::Troubled(trouble, nth, calls));
            std::iter::once(Self::CutOff(nth)).chain(met)
        };
        (1..=requests).flat_map(at).collect()
    }
}

/// A write, and what there is before and after it where nothing goes wrong.
pub(super) struct Written {
    call: Call,
    /// The path without ids.
    path: String,
    site: Site,
    known: Known,
    before: Value,
    after: Value,
    rows: BTreeMap<&'static str, usize>,
    operations: Vec<(String, u64)>,
}

/// The functions as one process has them.
pub(crate) fn api(table: &Table) -> Api {
    functions(table, &tracking::store::Store::with_lease(table.clone(), ROOT, LEASE))
}

/// The same, where each point goes into a run's journal.
pub(crate) fn api_with_journal(table: &Table) -> Api {
    let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, LEASE);
    functions(table, &tracking.with_points_in_document(0))
}

fn functions(table: &Table, tracking: &tracking::store::Store) -> Api {
    let registry = registry::store::Store::new(table.clone(), ROOT);
    let evaluation = evaluation::store::Store::with_lease(table.clone(), LEASE);
    let traces = traces::store::Store::with_lease(table.clone(), artifact_store::Artifacts::below(ROOT), LEASE);
    let others = [evaluation::router(&evaluation), registry::router(&registry), traces::router(&traces)];
    Api(service::joined(tracking::router(tracking), others))
}

/// How many items each row has.
async fn rows(site: &Site) -> BTreeMap<&'static str, usize> {
    let mut rows = BTreeMap::new();
    for item in site.items().await {
        *rows.entry(RowDescription::of(&key_of(&item)).unwrap().name).or_default() += 1;
    }
    rows
}

impl Written {
    /// Tries a write where nothing goes wrong. It has to succeed.
    pub(super) async fn new(site: &Site, call: Call) -> Self {
        let site = site.copy();
        let copy = site.copy();
        let before = view::of(&api(&site.table), &call.path).await.unwrap();
        let known = Known::of(&format!("{before} {}", call.body));
        let answer = call.send(&api(&copy.faulty())).await;
        assert_eq!(answer.status, 200, "{call:?}: {answer:?}");
        let operations = copy.faults.all_calls();
        let after = view::of(&api(&copy.table), &call.path).await.unwrap();
        let (before, after) = (known.same(&before), known.same(&after));
        let path = Known::of("").same_text(&call.path);
        Self { call, path, site, known, before, after, rows: rows(&copy).await, operations }
    }

    /// What writes have in common that are tried once: the endpoint, and the requests to the table.
    pub(super) fn kind(&self) -> String {
        format!("{} {} {:?}", self.call.method, self.path, self.operations)
    }

    pub(super) fn courses(&self) -> Vec<Course> {
        let requests = self.operations.iter().map(|(_, calls)| calls).sum();
        Course::all(requests, self.operations.iter().any(|(operation, _)| operation.starts_with("Batch")))
    }

    async fn view(&self, site: &Site) -> view::View {
        view::of(&api(&site.table), &self.call.path).await.map(|view| self.known.same(&view))
    }

    /// What must be true of the write in this course.
    pub(super) async fn goes(&self, course: Course) -> Result<(), String> {
        self.check(course).await.map_err(|wrong| format!("{} {} {course:?}: {wrong}", self.call.method, self.call.path))
    }

    async fn check(&self, course: Course) -> Result<(), String> {
        let site = self.site.copy();
        match course {
            Course::CutOff(nth) => site.faults.trouble_at(Trouble::Disconnected, nth, u64::MAX),
            Course::Troubled(trouble, nth, calls) => site.faults.trouble_at(trouble, nth, calls),
        }
        let answer = self.call.send(&api(&site.impatient())).await;
        site.faults.work_again();
        let found = self.view(&site).await?;
        let (happened, did_not) = (found == self.after, found == self.before);
        let differs = || difference(&self.after, &found);
        if matches!(course, Course::Troubled(_, _, 1)) && answer.status != 200 {
            return Err(format!("one trouble is outlived, but {answer:?}"));
        }
        if answer.status == 200 && !happened {
            return Err(format!("acknowledged, but{}", differs()));
        }
        let may_be_partial = self.call.is_in_parts() && answer.status != 200;
        if !happened && !did_not && !may_be_partial {
            return Err(format!("done by half:{}, after {answer:?}", differs()));
        }
        let is_cut_off = matches!(course, Course::CutOff(_));
        if answer.status != 200 && !answer.is_repeated() {
            let is_unknown = answer.status == 409 && answer.body["error_code"] == "ABORTED";
            let is_lost = matches!(course, Course::Troubled(Trouble::AnswerLost, ..));
            if !(self.call.is_creation() && is_unknown && is_lost) {
                return Err(format!("refused: {answer:?}"));
            }
        } else if self.call.is_creation() && happened && answer.status != 200 && !is_cut_off {
            return Err(format!("would be repeated and exist twice: {answer:?}"));
        }
        // A client that got no answer repeats its call; a creation that happened would be there twice, as in MLflow.
        let repeats = answer.status != 200 && !(self.call.is_creation() && happened);
        if repeats {
            let again = self.call.send(&api(&site.table)).await;
            let found = self.view(&site).await?;
            if found != self.after || (again.status != 200 && !happened) {
                return Err(format!("repeated:{}, {again:?}, after {answer:?}", difference(&self.after, &found)));
            }
        }
        self.check_rows(&rows(&site).await, answer.status != 200)
    }

    /// No row is missing, and none is left over but those that nobody reads.
    fn check_rows(&self, found: &BTreeMap<&'static str, usize>, answered_not: bool) -> Result<(), String> {
        let path = &self.path;
        let may_leave =
            |name: &str| answered_not && LEFT_OVER.iter().any(|(end, row)| path.ends_with(end) && *row == name);
        let names: BTreeSet<_> = self.rows.keys().chain(found.keys()).collect();
        let wrong: Vec<_> = names
            .into_iter()
            .filter_map(|name| {
                let count = |rows: &BTreeMap<&'static str, usize>| rows.get(name).copied().unwrap_or_default();
                let (expected, found) = (count(&self.rows), count(found));
                let is_left_over = may_leave(name) && found > expected;
                (expected != found && !is_left_over).then(|| format!("{found} {name}, not {expected}"))
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
    }
}
