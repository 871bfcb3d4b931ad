//! All writes, with a fault at each of their requests to the table.
//!
//! The writes are the samples of each domain, at least one for every endpoint that writes, and some
//! additional ones ([`additional_writes`]). Before each write is executed, it is tried on copies of
//! the table, with one fault at a time ([`faulty_write`]). Then clients read the result
//! ([`client_view`], [`view_cache`]). Writes to packed traces start from a table of their own
//! ([`packed_traces`]).

mod additional_writes;
pub(crate) mod client_view;
mod execution_comparison;
pub(crate) mod faulty_write;
mod packed_traces;
pub(crate) mod view_cache;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use access::Permission::{Create, Delete, Update};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use futures::StreamExt;
use futures::stream;
use mlflow_api::Workspace;
use test_site::route_samples::{SAMPLES, SampleClient};
use test_site::{ROOT, TestEnvironment, all_troubles};
use tokio::task::spawn_blocking;

use crate::faults::packing::timed;
use crate::test_server::{functions, routes, writes_to_the_table};
use faulty_write::Written;

/// Number of copies of the table that are written to concurrently.
const AT_ONCE: usize = 3;
/// Sampling rate for the remaining kinds of writes to an endpoint, after its first write was tried.
const OTHERS: usize = 4;

/// Findings so far.
#[derive(Default)]
struct Findings {
    /// Kinds of writes so far, as endpoint and requests to the table. Each kind is tried once.
    tried: BTreeSet<String>,
    /// Endpoints with a write that was tried.
    endpoints: BTreeSet<String>,
    /// Number of further kinds of writes to endpoints that have a write in the sample already.
    others: usize,
    courses: usize,
    wrong: Vec<String>,
}

impl Findings {
    /// Returns whether a write of this kind is tried: it is the first of its kind, and part of the
    /// sample.
    fn wants(&mut self, endpoint: String, kind: String) -> bool {
        if !self.tried.insert(kind) {
            return false;
        }
        if self.endpoints.insert(endpoint) || all_troubles() {
            return true;
        }
        self.others += 1;
        self.others.is_multiple_of(OTHERS)
    }
}

#[derive(Clone)]
struct Sweep {
    site: TestEnvironment,
    findings: Arc<Mutex<Findings>>,
}

impl Sweep {
    /// Tries a write, unless one of its kind was tried before. Each fault has a simulated clock of
    /// its own, so no test waits in real time.
    async fn of(&self, write: faulty_write::Call) {
        if write.is_read() {
            return;
        }
        // Stream records are left out, so that copies are smaller.
        self.site.engine.trim_stream(Duration::ZERO).await.unwrap();
        let (site, findings) = (self.site.clone(), Arc::clone(&self.findings));
        let is_new = move |endpoint, kind| findings.lock().unwrap().wants(endpoint, kind);
        let written = spawn_blocking(move || timed(Written::new(&site, write, is_new))).await.unwrap();
        let Some(written) = written.map(Arc::new) else { return };
        let number = self.findings.lock().unwrap().tried.len();
        let courses = stream::iter(written.courses(number)).map(|course| {
            let written = Arc::clone(&written);
            async move { spawn_blocking(move || timed(written.goes(course))).await.unwrap() }
        });
        let outcomes: Vec<_> = courses.buffer_unordered(AT_ONCE).collect().await;
        let mut findings = self.findings.lock().unwrap();
        findings.courses += outcomes.len();
        findings.wrong.extend(outcomes.into_iter().filter_map(Result::err));
    }
}

/// Returns whether the writes of a domain are covered here. Users and roles are in a separate
/// table, which clients of this table cannot see. The tests of users cover their faults.
fn is_swept(domain: &str) -> bool {
    writes_to_the_table(domain) && domain != auth::DOMAIN.function.name
}

/// Returns a client with a site of its own. Each domain has one, because less has to be read after
/// each fault if the site is small.
async fn walk(findings: &Arc<Mutex<Findings>>) -> SampleClient {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let sweep = Sweep { site: site.clone(), findings: Arc::clone(findings) };
    SampleClient::new(functions(&site.table).await.layer(from_fn(move |request: Request, next: Next| {
        let sweep = sweep.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            let call = faulty_write::Call { method: head.method.to_string(), path: head.uri.to_string(), body: text };
            sweep.of(call).await;
            next.run(Request::from_parts(head, Body::from(body))).await
        }
    })))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_survives_a_fault_at_each_of_its_requests() {
    let (findings, mut endpoints) = (Arc::default(), BTreeSet::new());
    for samples in SAMPLES.iter().filter(|samples| is_swept(samples.domain)) {
        let mut walk = walk(&findings).await;
        (samples.writes)(&mut walk).await;
        endpoints.append(&mut walk.endpoints);
    }
    let mut walk = walk(&findings).await;
    additional_writes::writes(&mut walk).await;
    endpoints.append(&mut walk.endpoints);

    let is_write = |permission| matches!(permission, Create(_) | Update(_) | Delete(_));
    let writes = routes(|domain, endpoint| is_swept(domain.function.name) && is_write(endpoint.permission));
    let unswept: Vec<_> = writes.into_iter().filter(|route| !endpoints.contains(route)).collect();
    assert_eq!(unswept, Vec::<String>::new(), "endpoints without a write");
    let findings = findings.lock().unwrap();
    let least = if all_troubles() { 8 } else { 1 };
    assert!(findings.courses >= least * endpoints.len(), "{} courses", findings.courses);
    assert!(findings.wrong.is_empty(), "{}\n{} wrong", findings.wrong.join("\n"), findings.wrong.len());
}
