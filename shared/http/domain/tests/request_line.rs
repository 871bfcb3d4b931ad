//! Log lines of requests and other work: their format, and their cost.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use lambda_http::tower::ServiceExt;
use tracing::level_filters::LevelFilter;

const CALLS: u32 = 20_000;
/// Maximum cost of a line in µs. Builds without optimization stay below it.
const MAX_MICROSECONDS: f64 = 100.0;

/// Returns the CPU time of this thread in ns, which other processes do not affect.
fn cpu_time() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    told.split(' ').next().unwrap().parse().unwrap()
}

/// Returns the cost of a call in µs.
fn cost(router: &Router) -> f64 {
    let call = || {
        let request = Request::post("/api/2.0/mlflow/runs/log-batch").body(Body::empty()).unwrap();
        let mut answering = pin!(router.clone().oneshot(request));
        let Poll::Ready(answer) = answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("the handler never waits");
        };
        assert!(answer.unwrap().status().is_success());
    };
    (0..CALLS / 10).for_each(|_| call());
    let begin = cpu_time();
    (0..CALLS).for_each(|_| call());
    let took = u32::try_from((cpu_time() - begin) / 1_000).unwrap();
    f64::from(took) / f64::from(CALLS)
}

#[test]
#[ignore = "a measurement: it prints what docs/reference/cost.md says"]
fn the_line_of_a_request_takes_microseconds() {
    // Same setup as in a function, except that the output is discarded.
    let _guard = tracing::subscriber::set_default(domain::log_lines(LevelFilter::INFO, io::sink));
    let _call =
        tracing::info_span!("Lambda runtime invoke", requestId = "6d68ca91-49c9-448d-89b8-7ca3e6dc66aa").entered();
    let plain = Router::new().route("/api/2.0/mlflow/runs/log-batch", axum::routing::post(|| async { "{}" }));
    let told = service::log_requests(plain.clone(), service::log);
    let (without, with) = (cost(&plain), cost(&told));
    writeln!(io::stderr(), "a call takes {with:.1} µs with its log line, and {without:.1} µs without").unwrap();
    assert!(with - without < MAX_MICROSECONDS, "{with} µs with the log line, {without} µs without");
}

/// Captured log output.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Work that is not part of a request, such as a batch of the stream, has to be logged as well,
/// because costs are computed from the log.
#[test]
fn work_without_a_request_has_a_line_of_the_same_form() {
    let logged = Logged::default();
    let writer = logged.clone();
    let log = domain::log_lines(LevelFilter::INFO, move || writer.clone());
    let _guard = tracing::subscriber::set_default(log);
    let mut work = pin!(service::log_work("tick", async { 7 }));
    assert_eq!(work.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(7));
    let line = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    let begin = r#"{"timestamp":"2026-01-31T18:56:24.086123Z","#.len();
    let rest = line.get(begin..).unwrap_or_default();
    assert!(rest.starts_with(r#""level":"INFO","fields":{"message":"request","route":"tick","ms":"#), "{line}");
    let end = r#""requests":0,"read_units":0.0,"write_units":0.0},"target":"request"}"#;
    assert!(line.trim_end().ends_with(end), "{line}");
}
