//! A write in one kind of trouble, and the rules that hold then.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use embedded_engine::faults::Trouble;
use serde_json::Value;
use table::Table;
use test_site::{Answer, Api, ROOT, Site, sample, writes};
use tower::ServiceExt;

use super::same::{Known, difference};
use super::seen::{Rows, Seen, State};
use super::view;

/// As short as it can be: a deletion waits for it.
pub(crate) const LEASE: Duration = Duration::from_millis(2);

/// Writes of several parts. Each part is whole by itself, as in MLflow: a client that has no answer
/// may see some of them.
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

/// Rows that an abandoned write may leave, by its path. Without the item that names them, they are
/// never shown.
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
    // Such a mark does not count.
    ("/api/2.0/mlflow/traces", "TraceMark"),
    // Deleting a model again finishes it, unless it was renamed.
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
    pub(super) async fn send(&self, api: &Api) -> Answer {
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
    /// Those of a write that makes these requests to the table. Servers make two attempts at each
    /// request. A trouble that a request cannot meet is left out. In a sample, some of the
    /// requests meet one, and at least one that writes. Each write begins with another.
    fn of(requests: &[String], write: usize) -> Vec<Self> {
        let at = |(nth, operation): (u64, &String)| {
            let troubles = [
                (Trouble::AnswerLost, 1),
                (Trouble::AnswerLost, 2),
                (Trouble::AnswerLost, u64::MAX),
                (Trouble::Throttled, 1),
                (Trouble::Throttled, 2),
                (Trouble::Conflict, 1),
                (Trouble::Halved, 1),
            ];
            let met = troubles.into_iter().filter(|(trouble, _)| trouble.is_met_by(operation));
            let met = met.map(|(trouble, calls)| Self::Troubled(trouble, nth, calls));
            sample(nth + write as u64, operation, std::iter::once(Self::CutOff(nth)).chain(met).collect())
        };
        let mut all: Vec<_> = (1..).zip(requests).flat_map(at).collect();
        let last = (1..).zip(requests).filter(|(_, operation)| writes(operation)).last();
        if let Some((nth, _)) = last
            && all.is_empty()
        {
            let is_lost = write.is_multiple_of(2);
            all.push(if is_lost { Self::Troubled(Trouble::AnswerLost, nth, 1) } else { Self::CutOff(nth) });
        }
        all
    }
}

/// A client's view, and the state of the table.
pub(super) struct Found {
    pub(super) view: Arc<Value>,
    pub(super) state: State,
}

/// What came of a write in a course.
pub(super) struct Outcome {
    answer: Answer,
    pub(super) found: Found,
    happened: bool,
}

impl Outcome {
    /// Whether its client has no answer.
    pub(super) fn is_open(&self) -> bool {
        self.answer.status != 200
    }
}

/// A write, and the states before and after it without trouble.
pub(super) struct Written {
    pub(super) call: Call,
    /// The path without ids.
    path: String,
    pub(super) site: Site,
    known: Known,
    seen: Seen<Value>,
    before: Arc<Value>,
    pub(super) after: Found,
    /// Its requests to the table, in their order.
    requests: Vec<String>,
    /// Tables that courses have led to, each with whether the client had no answer then.
    met: Mutex<HashSet<(String, bool)>>,
}

/// The functions as one process has them.
pub(crate) fn api(table: &Table) -> Api {
    functions(table, tracking::store::Store::with_lease(table.clone(), ROOT, LEASE))
}

/// The same, where each point goes into a run's journal.
pub(crate) fn api_with_journal(table: &Table) -> Api {
    functions(table, tracking::store::Store::with_lease(table.clone(), ROOT, LEASE).with_points_in_document(0))
}

/// Most calls are of one or two functions, so a router is made when it is asked for.
fn functions(table: &Table, tracking: tracking::store::Store) -> Api {
    let (table, routers) = (table.clone(), Arc::<[OnceLock<Router>; 4]>::default());
    let answer = move |request: Request| {
        let function = function_of(request.uri().path());
        let router = routers[function].get_or_init(|| match function {
            0 => tracking::router(&tracking, test_site::everybody()),
            1 => registry::router(&registry::store::Store::new(table.clone(), ROOT), test_site::everybody()),
            2 => {
                evaluation::router(&evaluation::store::Store::with_lease(table.clone(), LEASE), test_site::everybody())
            }
            _ => {
                let artifacts = artifact_store::Artifacts::below(ROOT);
                traces::router(
                    &traces::store::Store::with_lease(table.clone(), artifacts, LEASE),
                    test_site::everybody(),
                )
            }
        });
        let router = router.clone();
        async move { router.oneshot(request).await.unwrap() }
    };
    Api(Router::new().fallback(answer))
}

/// Which function answers at a path.
fn function_of(path: &str) -> usize {
    let below = path.split_once("/mlflow/").map_or(path, |(_, below)| below);
    match below.split('/').next() {
        Some("registered-models" | "model-versions") => 1,
        Some("datasets" | "scorers") => 2,
        Some("traces" | "get-trace-artifact") => 3,
        _ if path.starts_with("/v1/traces") => 3,
        _ => 0,
    }
}

impl Written {
    /// Tries a write where nothing goes wrong. It has to succeed. Nothing if it is of a kind that is not wanted: writes have in common the
    /// endpoint, and the requests to the table.
    pub(super) async fn new(site: &Site, call: Call, is_wanted: impl FnOnce(String, String) -> bool) -> Option<Self> {
        let copy = site.copy();
        copy.faults.keep_order();
        let answer = call.send(&api(&copy.faulty())).await;
        assert_eq!(answer.status, 200, "{call:?}: {answer:?}");
        let requests = copy.faults.order();
        let path = Known::of("").same_text(&call.path);
        let mut kinds = requests.clone();
        kinds.sort_unstable();
        let endpoint = format!("{} {path}", call.method);
        let kind = format!("{endpoint} {kinds:?}");
        if !is_wanted(endpoint, kind) {
            return None;
        }
        let site = site.copy();
        let seen = Seen::of(&site, &format!("{} {}", call.path, call.body)).await;
        let before = view::of(&api(&site.table), &call.path).await.unwrap();
        let known = Known::of(&format!("{before} {}", call.body));
        let before = seen.keep(&seen.state(&site).await, known.same(&before));
        let after = view::of(&api(&copy.table), &call.path).await.unwrap();
        let state = seen.state(&copy).await;
        let after = Found { view: seen.keep(&state, known.same(&after)), state };
        Some(Self { call, path, site, known, seen, before, after, requests, met: Mutex::default() })
    }

    /// What is tried of it, the writes being numbered.
    pub(super) fn courses(&self, write: usize) -> Vec<Course> {
        Course::of(&self.requests, write)
    }

    /// What clients find in a copy, where all that they find agrees.
    pub(super) async fn found(&self, site: &Site) -> Result<Found, String> {
        let state = self.seen.state(site).await;
        let view = match self.seen.found(&state) {
            Some(view) => view,
            None => self.seen.keep(&state, self.known.same(&view::of(&api(&site.table), &self.call.path).await?)),
        };
        Ok(Found { view, state })
    }

    /// Whether no course before led to this table: the view of a client that repeats its call
    /// follows from the content of the table.
    pub(super) fn is_first(&self, outcome: &Outcome) -> bool {
        self.met.lock().unwrap().insert((outcome.found.state.kind.clone(), outcome.is_open()))
    }

    /// What must be true of the write in this course.
    pub(super) async fn goes(&self, course: Course) -> Result<(), String> {
        self.check(course).await.map_err(|wrong| format!("{} {} {course:?}: {wrong}", self.call.method, self.call.path))
    }

    async fn check(&self, course: Course) -> Result<(), String> {
        let site = self.site.copy();
        let outcome = self.attempt(&site, course).await?;
        if !self.is_first(&outcome) {
            return Ok(());
        }
        let repeated = self.repeat(&site, &outcome).await?;
        self.check_rows(&repeated.as_ref().unwrap_or(&outcome.found).state.rows, outcome.is_open())
    }

    /// Sends the write to a copy of the site, in this course; returns a client's view then.
    pub(super) async fn attempt(&self, site: &Site, course: Course) -> Result<Outcome, String> {
        match course {
            Course::CutOff(nth) => site.faults.trouble_at(Trouble::Disconnected, nth, u64::MAX),
            Course::Troubled(trouble, nth, calls) => site.faults.trouble_at(trouble, nth, calls),
        }
        let answer = self.call.send(&api(&site.impatient())).await;
        site.faults.work_again();
        let found = self.found(site).await?;
        let (happened, did_not) = (found.view == self.after.view, found.view == self.before);
        let differs = || difference(&self.after.view, &found.view);
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
        Ok(Outcome { answer, found, happened })
    }

    /// Sends the write once more where its client has no answer, and returns the client's view
    /// then. A creation that happened would be there twice, as in MLflow.
    pub(super) async fn repeat(&self, site: &Site, outcome: &Outcome) -> Result<Option<Found>, String> {
        let Outcome { answer, happened, .. } = outcome;
        if !outcome.is_open() || (self.call.is_creation() && *happened) {
            return Ok(None);
        }
        let again = self.call.send(&api(&site.table)).await;
        let found = self.found(site).await?;
        if found.view != self.after.view || (again.status != 200 && !happened) {
            let differs = difference(&self.after.view, &found.view);
            return Err(format!("repeated:{differs}, {again:?}, after {answer:?}"));
        }
        Ok(Some(found))
    }

    /// No row is missing, and none is left over but those that nobody reads.
    fn check_rows(&self, found: &Rows, answered_not: bool) -> Result<(), String> {
        let path = &self.path;
        let may_leave =
            |name: &str| answered_not && LEFT_OVER.iter().any(|(end, row)| path.ends_with(end) && *row == name);
        let names: BTreeSet<_> = self.after.state.rows.keys().chain(found.keys()).collect();
        let wrong: Vec<_> = names
            .into_iter()
            .filter_map(|name| {
                let count = |rows: &Rows| rows.get(name).copied().unwrap_or_default();
                let (expected, found) = (count(&self.after.state.rows), count(found));
                let is_left_over = may_leave(name) && found > expected;
                (expected != found && !is_left_over).then(|| format!("{found} {name}, not {expected}"))
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
    }
}
