//! A write with one kind of fault, and the invariants that have to hold then.

use artifact_store::Archive;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use embedded_engine::faults::InjectedFault;
use entities::layout::CURRENT_LAYOUT;
use serde_json::Value;
use table::Table;
use test_site::{ROOT, TestClient, TestEnvironment, TestResponse, sample, writes};
use tower::ServiceExt;

use super::client_view;
use super::execution_comparison::{Known, difference};
use super::view_cache::{Rows, Seen, State};

/// Length of the leases. It is as short as possible, because deletions wait for leases to expire.
pub(crate) const LEASE: Duration = Duration::from_millis(2);

/// Paths of writes that consist of several parts. Each part is atomic, as in MLflow, but a client
/// without a response may see only some of the parts.
const IN_PARTS: [&str; 7] = [
    "/runs/log-batch",
    "/runs/log-metric",
    "/runs/log-model",
    "/records",
    "/v1/traces",
    "/traces/delete-traces",
    "/traces/link-to-run",
];

/// Creations, which are not retried if they may have taken effect (`docs/adr/0017-creations.md`).
const CREATIONS: [&str; 8] = [
    "/experiments/create",
    "/runs/create",
    "/mlflow/logged-models",
    "/datasets/create",
    "/scorers/register",
    "/registered-models/create",
    "/model-versions/create",
    // An old client starts a trace whose id is assigned by the server.
    "/api/2.0/mlflow/traces",
];

/// Rows that an abandoned write may leave behind, by its path. They are invisible without the item
/// that refers to them.
const LEFT_OVER: [(&str, &str); 14] = [
    // Readers return a point once, even if it is in two tails.
    ("/runs/log-batch", "MetricJournal"),
    ("/runs/log-metric", "MetricJournal"),
    ("/runs/log-batch", "JournalCall"),
    ("/runs/log-metric", "JournalCall"),
    ("/runs/create", "RunTag"),
    ("/logged-models", "LoggedModelParam"),
    ("/datasets/create", "EvaluationDatasetTag"),
    ("/datasets/create", "ExperimentEvaluationDataset"),
    // After the deletion of a dataset, the indexer cleans up, except for the lists of experiments
    // beyond the first hundred.
    ("/datasets/NEW", "ExperimentEvaluationDataset"),
    ("/records", "EvaluationPart"),
    // A mark that an abandoned write leaves behind has no effect.
    ("/api/2.0/mlflow/traces", "TraceMark"),
    // Deleting the model again completes the removal, unless the model was renamed.
    ("/registered-models/delete", "ModelHome"),
    ("/registered-models/delete", "ModelTag"),
    ("/registered-models/delete", "ModelVersion"),
];

/// Rows that a deletion may leave behind even if it succeeds, by the end of its path. The housekeeper
/// deletes them.
const REMOVED_LATER: [(&str, &str); 4] = [
    ("written", "SkillRemoval"),
    ("written", "SkillVersion"),
    ("written", "McpServerRemoval"),
    ("written", "McpServerVersion"),
];

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: String,
}

impl Call {
    pub(super) async fn send(&self, api: &TestClient) -> TestResponse {
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

/// A kind of fault, and where it occurs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Course {
    /// No request is sent from the one with this number on, and the client gets no response.
    CutOff(u64),
    /// Starting with the given request, the given number of requests fail.
    Troubled(InjectedFault, u64, u64),
}

impl Course {
    /// Returns the faults to try for a write that makes these requests to the table. Servers try
    /// each request twice. Faults that a request cannot have are left out. A sample covers some of
    /// the requests, and at least one that writes. It starts at a different request for each write.
    fn of(requests: &[String], write: usize) -> Vec<Self> {
        let at = |(nth, operation): (u64, &String)| {
            let troubles = [
                (InjectedFault::AnswerLost, 1),
                (InjectedFault::AnswerLost, 2),
                (InjectedFault::AnswerLost, u64::MAX),
                (InjectedFault::Throttled, 1),
                (InjectedFault::Throttled, 2),
                (InjectedFault::Conflict, 1),
                (InjectedFault::Halved, 1),
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
            all.push(if is_lost { Self::Troubled(InjectedFault::AnswerLost, nth, 1) } else { Self::CutOff(nth) });
        }
        all
    }
}

/// View of a client, and the state of the table.
pub(super) struct Found {
    pub(super) view: Arc<Value>,
    pub(super) state: State,
}

/// Result of a write with a fault.
pub(super) struct Outcome {
    answer: TestResponse,
    pub(super) found: Found,
    happened: bool,
}

impl Outcome {
    /// Returns whether the client got no response, so that the outcome is open.
    pub(super) fn is_open(&self) -> bool {
        self.answer.status != 200
    }
}

/// A write, and the states before it and after it without a fault.
pub(super) struct Written {
    pub(super) call: Call,
    /// Path without ids.
    path: String,
    pub(super) site: TestEnvironment,
    known: Known,
    seen: Seen<Value>,
    before: Arc<Value>,
    pub(super) after: Found,
    /// Its requests to the table, in order.
    requests: Vec<String>,
    /// States of the table that faults have led to, each with whether the client got no response.
    met: Mutex<HashSet<(String, bool)>>,
}

/// Returns the functions of a single process.
pub(crate) fn api(table: &Table) -> TestClient {
    api_with_archive(table, Archive::default())
}

/// Returns the functions of a single process, with an archive of traces.
pub(crate) fn api_with_archive(table: &Table, archive: Archive) -> TestClient {
    functions(table, tracking::store::Store::with_lease(table.clone(), ROOT, LEASE), archive, CURRENT_LAYOUT)
}

/// Returns the functions of a single process, for a table with this layout.
pub(crate) fn api_in_layout(table: &Table, layout: i64) -> TestClient {
    let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, LEASE).with_layout(layout);
    functions(table, tracking, Archive::default(), layout)
}

/// Returns the functions of a single process that write all points into the runs' journals.
pub(crate) fn api_with_journal(table: &Table) -> TestClient {
    let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, LEASE).with_points_in_document(0);
    functions(table, tracking, Archive::default(), CURRENT_LAYOUT)
}

/// Creates each router on first use, because most tests call only one or two functions.
fn functions(table: &Table, tracking: tracking::store::Store, archive: Archive, layout: i64) -> TestClient {
    let (table, routers) = (table.clone(), Arc::<[OnceLock<Router>; 7]>::default());
    let answer = move |request: Request| {
        let function = function_of(request.uri().path());
        let router = routers[function].get_or_init(|| match function {
            0 => tracking::router(&tracking, test_site::everybody()),
            1 => registry::router(&registry::store::Store::new(table.clone(), ROOT), test_site::everybody()),
            2 => {
                evaluation::router(&evaluation::store::Store::with_lease(table.clone(), LEASE), test_site::everybody())
            }
            4 => webhooks::router(&webhooks::store::Store::new(table.clone()), test_site::everybody()),
            5 => mcp_servers::router(&mcp_servers::store::Store::new(table.clone()), test_site::everybody()),
            6 => {
                let artifacts = artifact_store::ArtifactStore::below(ROOT);
                let limits = mlflow_api::skills::ContentLimits::MLFLOW;
                skills::router(&skills::store::Store::new(table.clone(), artifacts, limits), test_site::everybody())
            }
            _ => {
                let artifacts = artifact_store::ArtifactStore::below(ROOT);
                let store = traces::store::Store::with_lease(table.clone(), artifacts, LEASE).with_layout(layout);
                traces::router(&store.with_archive(archive.clone()), test_site::everybody())
            }
        });
        let router = router.clone();
        async move { router.oneshot(request).await.unwrap() }
    };
    TestClient(Router::new().fallback(answer))
}

/// Returns the index of the function that handles a path.
fn function_of(path: &str) -> usize {
    let below = path.split_once("/mlflow/").map_or(path, |(_, below)| below);
    match below.split('/').next() {
        Some("registered-models" | "model-versions") => 1,
        Some("datasets" | "scorers" | "label-schemas" | "review-queues" | "issues") => 2,
        Some("traces" | "get-trace-artifact") => 3,
        Some("webhooks") => 4,
        Some("mcp-servers") => 5,
        Some("skills") => 6,
        _ if path.starts_with("/v1/traces") => 3,
        _ => 0,
    }
}

impl Written {
    /// Tries a write without a fault. It has to succeed. Returns `None` if this kind of write is
    /// not wanted. The kind consists of the endpoint and the requests to the table.
    pub(super) async fn new(
        site: &TestEnvironment,
        call: Call,
        is_wanted: impl FnOnce(String, String) -> bool,
    ) -> Option<Self> {
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
        let before = client_view::of(&api(&site.table), &call.path).await.unwrap();
        let known = Known::of(&format!("{before} {}", call.body));
        let before = seen.keep(&seen.state(&site).await, known.same(&before));
        let after = client_view::of(&api(&copy.table), &call.path).await.unwrap();
        let state = seen.state(&copy).await;
        let after = Found { view: seen.keep(&state, known.same(&after)), state };
        Some(Self { call, path, site, known, seen, before, after, requests, met: Mutex::default() })
    }

    /// Returns the faults to try for the write with this number.
    pub(super) fn courses(&self, write: usize) -> Vec<Course> {
        Course::of(&self.requests, write)
    }

    /// Returns what clients find in a copy, or an error if their findings contradict each other.
    pub(super) async fn found(&self, site: &TestEnvironment) -> Result<Found, String> {
        let state = self.seen.state(site).await;
        let view = match self.seen.found(&state) {
            Some(view) => view,
            None => {
                self.seen.keep(&state, self.known.same(&client_view::of(&api(&site.table), &self.call.path).await?))
            }
        };
        Ok(Found { view, state })
    }

    /// Returns whether this is the first fault that led to this state of the table. Later ones need
    /// no check, because the view of a client that repeats its call depends only on the content of
    /// the table.
    pub(super) fn is_first(&self, outcome: &Outcome) -> bool {
        self.met.lock().unwrap().insert((outcome.found.state.kind.clone(), outcome.is_open()))
    }

    /// Checks the invariants for the write with this fault.
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

    /// Sends the write to a copy of the site with a fault, and returns the resulting view of a
    /// client.
    pub(super) async fn attempt(&self, site: &TestEnvironment, course: Course) -> Result<Outcome, String> {
        match course {
            Course::CutOff(nth) => site.faults.trouble_at(InjectedFault::Disconnected, nth, u64::MAX),
            Course::Troubled(trouble, nth, calls) => site.faults.trouble_at(trouble, nth, calls),
        }
        let answer = self.call.send(&api(&site.impatient())).await;
        site.faults.work_again();
        let found = self.found(site).await?;
        let (happened, did_not) = (found.view == self.after.view, found.view == self.before);
        let differs = || difference(&self.after.view, &found.view);
        if matches!(course, Course::Troubled(_, _, 1)) && answer.status != 200 {
            return Err(format!("a single fault has to be tolerated, but {answer:?}"));
        }
        if answer.status == 200 && !happened {
            return Err(format!("acknowledged, but{}", differs()));
        }
        let may_be_partial = self.call.is_in_parts() && answer.status != 200;
        if !happened && !did_not && !may_be_partial {
            return Err(format!("partially done:{}, after {answer:?}", differs()));
        }
        let is_cut_off = matches!(course, Course::CutOff(_));
        if answer.status != 200 && !answer.is_repeated() {
            let is_unknown = answer.status == 409 && answer.body["error_code"] == "ABORTED";
            let is_lost = matches!(course, Course::Troubled(InjectedFault::AnswerLost, ..));
            if !(self.call.is_creation() && is_unknown && is_lost) {
                return Err(format!("refused: {answer:?}"));
            }
        } else if self.call.is_creation() && happened && answer.status != 200 && !is_cut_off {
            return Err(format!("would be repeated and exist twice: {answer:?}"));
        }
        Ok(Outcome { answer, found, happened })
    }

    /// Repeats the write if its client has no response, and returns the resulting view of a client.
    /// A creation that has taken effect is not repeated, because it would create a second entity,
    /// as in MLflow.
    pub(super) async fn repeat(&self, site: &TestEnvironment, outcome: &Outcome) -> Result<Option<Found>, String> {
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

    /// Checks that no row is missing, and that only invisible rows are left over.
    fn check_rows(&self, found: &Rows, answered_not: bool) -> Result<(), String> {
        let path = &self.path;
        let is_in =
            |list: &[(&str, &str)], name: &str| list.iter().any(|(end, row)| path.ends_with(end) && *row == name);
        let may_leave = |name: &str| is_in(&REMOVED_LATER, name) || answered_not && is_in(&LEFT_OVER, name);
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
