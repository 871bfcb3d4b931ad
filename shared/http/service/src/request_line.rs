//! The log line of each request. It does not contain any content of requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use access::Caller;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::StatusCode;
use runtime::clock::Moment;
use sha2::{Digest, Sha256};
use table::{ConsumedUnits, UsageMeter};

/// Number of bytes of a caller's hash in the log. Enough to distinguish callers.
const HASH_BYTES: usize = 6;

/// The log entry of one request, complete once the response is ready to be sent.
#[derive(Clone, Debug)]
pub struct RequestLine {
    /// Method and path of the route, such as `GET /api/2.0/mlflow/runs/get`. `None` if no route
    /// matched, because paths chosen by unauthenticated clients are not logged.
    pub route: Option<Arc<str>>,
    /// Status of the response. `None` if the client disconnected first, or for work without a
    /// request ([`log_work`]).
    pub status: Option<StatusCode>,
    /// Time from the first byte of the request until the response was ready, without sending it.
    pub time: Duration,
    /// Requests to the tables and the capacity that they consumed.
    pub usage: ConsumedUnits,
    /// Hash of the caller's name, in hexadecimal. `None` for an anonymous caller.
    pub caller: Option<String>,
}

tokio::task_local! {
    /// What has been recorded about the current request for its log line.
    static NOTED: Arc<RequestNotes>;
}

#[derive(Default)]
struct RequestNotes {
    route: OnceLock<Arc<str>>,
    caller: OnceLock<String>,
}

/// Wraps a router so that `tell` is called with the log entry of each request.
pub fn log_requests(router: Router, tell: impl Fn(&RequestLine) + Clone + Send + Sync + 'static) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let mut telling = RequestReporter {
            begin: Moment::now(),
            notes: Arc::default(),
            meter: UsageMeter::default(),
            status: None,
            report: tell.clone(),
        };
        async move {
            let answering = NOTED.scope(Arc::clone(&telling.notes), next.run(request));
            let answer = telling.meter.clone().counting(answering).await;
            telling.answered(answer.status());
            answer
        }
    }))
}

/// Runs work that is not part of a request, such as a batch of the stream, and logs a line like
/// that of a request, with `name` as the route. If such lines are not logged, the consumption is
/// not measured either. In that case, the embedded engine also writes batches with deletions in one
/// piece.
pub async fn log_work<F: Future>(name: &str, work: F) -> F::Output {
    if !tracing::enabled!(target: "request", tracing::Level::INFO) {
        return work.await;
    }
    let (begin, meter) = (Moment::now(), UsageMeter::default());
    let outcome = meter.counting(work).await;
    let route = Some(name.into());
    log(&RequestLine { route, status: None, time: begin.age(), usage: meter.take(), caller: None });
    outcome
}

/// Logs the entry of a request. Operators' queries and `docs/guide/operate.md` use the names of its
/// fields.
pub fn log(line: &RequestLine) {
    tracing::info!(
        target: "request",
        route = line.route.as_deref().unwrap_or("unknown"),
        status = line.status.map(|status| status.as_u16()),
        // Tenths of a millisecond are precise enough for people and bills.
        ms = (line.time.as_secs_f64() * 10_000.0).round() / 10.0,
        requests = line.usage.requests,
        read_units = line.usage.read_units,
        write_units = line.usage.write_units,
        caller = line.caller.as_deref(),
        "request"
    );
}

/// Records which route handles the request, for the log line.
pub(crate) fn note_route(route: &Arc<str>) {
    note(|noted| drop(noted.route.set(Arc::clone(route))));
}

/// Records the caller of the request, for the log line.
pub(crate) fn note_caller(caller: &Caller) {
    let name = caller.name();
    if !name.is_empty() {
        note(|noted| drop(noted.caller.set(hash(name))));
    }
}

fn note(what: impl FnOnce(&RequestNotes)) {
    // Without [`log_requests`], for example in tests, there is no log entry.
    let _ = NOTED.try_with(|noted| what(noted));
}

fn hash(name: &str) -> String {
    let digest = Sha256::digest(name);
    let number = digest.iter().take(HASH_BYTES).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    format!("{number:0width$x}", width = 2 * HASH_BYTES)
}

/// Reports the request when dropped: after the response, or when the client disconnects.
struct RequestReporter<T: Fn(&RequestLine)> {
    begin: Moment,
    notes: Arc<RequestNotes>,
    meter: UsageMeter,
    status: Option<StatusCode>,
    report: T,
}

impl<T: Fn(&RequestLine)> RequestReporter<T> {
    fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl<T: Fn(&RequestLine)> Drop for RequestReporter<T> {
    fn drop(&mut self) {
        (self.report)(&RequestLine {
            route: self.notes.route.get().cloned(),
            status: self.status,
            time: self.begin.age(),
            usage: self.meter.take(),
            caller: self.notes.caller.get().cloned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use access::{AllowAll, Needs, Permission, Resource, Scope, Target, User};
    use axum::body::Body;
    use mlflow_api::{Result, RunId};
    use serde_json::{Value, json};
    use table::Table;
    use tower::ServiceExt;

    use super::*;
    use crate::{DomainStore, Endpoint, FunctionContext, Route, router};

    #[derive(Clone)]
    struct Reading(Table);

    impl DomainStore for Reading {
        fn table(&self) -> &Table {
            &self.0
        }

        fn for_request(&self, _: &Scope) -> Self {
            self.clone()
        }
    }

    struct Get(RunId);

    impl Endpoint for Get {
        type Store = Reading;
        type Answer = Value;

        fn read(request: &mlflow_api::Request) -> Result<Self> {
            let run = RunId::parse(request.argument("run_id").unwrap_or_default());
            run.map(Self).ok_or_else(|| mlflow_api::Error::invalid("no run"))
        }

        fn needs(&self) -> Needs {
            Needs::read(Target::Run(self.0.clone()))
        }

        async fn act(self, _: &Scope, _: &Reading) -> Result<Value> {
            Ok(json!({}))
        }
    }

    async fn lines(paths: &[&str]) -> Vec<RequestLine> {
        let engine = embedded_engine::Engine::memory().unwrap();
        let table = Table::new(engine.client(), "lines");
        table.create_if_missing().await.unwrap();
        let route = Route::to::<Get>("GET", "runs/get", Permission::Read(Resource::Run));
        let lines = Arc::<Mutex<Vec<RequestLine>>>::default();
        let kept = Arc::clone(&lines);
        let tell = move |line: &RequestLine| kept.lock().unwrap().push(line.clone());
        let app = log_requests(router(vec![route], &FunctionContext::new(Reading(table), Arc::new(AllowAll))), tell);
        for path in paths {
            let request = Request::get(*path).body(Body::empty()).unwrap();
            app.clone().oneshot(request).await.unwrap();
        }
        let lines = lines.lock().unwrap();
        lines.clone()
    }

    #[tokio::test]
    async fn each_request_is_told_with_its_row_and_its_cost() {
        let told = lines(&["/api/2.0/mlflow/runs/get?run_id=0123456789abcdef0123456789abcdef", "/secret"]).await;
        let short: Vec<_> = told
            .iter()
            .map(|line| (line.route.as_deref(), line.status.map(|status| status.as_u16()), line.usage.requests))
            .collect();
        assert_eq!(short, [(Some("GET /api/2.0/mlflow/runs/get"), Some(200), 1), (None, Some(404), 0)]);
        assert!(told[0].usage.read_units > 0.0);
        assert!(told.iter().all(|line| line.caller.is_none()));
    }

    #[tokio::test]
    async fn a_client_that_goes_away_is_told_as_well() {
        let lines = Arc::<Mutex<Vec<RequestLine>>>::default();
        let kept = Arc::clone(&lines);
        let never = || std::future::pending::<&str>();
        let tell = move |line: &RequestLine| kept.lock().unwrap().push(line.clone());
        let app = log_requests(Router::new().route("/", axum::routing::get(never)), tell);
        let mut answering = Box::pin(app.oneshot(Request::get("/").body(Body::empty()).unwrap()));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(answering.as_mut().poll(&mut context).is_pending());
        assert!(lines.lock().unwrap().is_empty());
        drop(answering);
        assert_eq!(lines.lock().unwrap()[0].status, None);
    }

    #[tokio::test]
    async fn a_caller_is_told_as_a_hash() {
        let noted = Arc::<RequestNotes>::default();
        let user = User {
            name: mlflow_api::UserName::named("ann").unwrap(),
            id: 1,
            is_admin: false,
            roles: Vec::new(),
            version: 1,
        };
        let noting = async {
            note_caller(&Caller::Anonymous);
            note_caller(&Caller::User(Arc::new(user)));
        };
        NOTED.scope(Arc::clone(&noted), noting).await;
        // The first digits of `printf ann | sha256sum`.
        assert_eq!(noted.caller.get().map(String::as_str), Some("49915e0d7d4b"));
    }
}
