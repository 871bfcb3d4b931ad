//! Every write with a fault at each of its requests to the table.
//!
//! The writes are the samples of each domain, one or more for every endpoint that writes, and some
//! more ([`more`]). Before each is executed, it is tried on copies of the table, one fault at a
//! time. Then clients look at the result ([`course`], [`view`], [`seen`]). Writes to packed traces
//! have a ground of their own ([`packed`]).

pub(crate) mod course;
mod more;
mod packed;
mod same;
pub(crate) mod seen;
pub(crate) mod view;

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
use samples::{SAMPLES, Walk};
use test_site::{ROOT, Site, all_troubles};
use tokio::task::spawn_blocking;

use crate::faults::packing::timed;
use crate::site::{functions, routes, writes_to_the_table};
use course::Written;

/// Copies of the table that are written to at the same time.
const AT_ONCE: usize = 3;
/// In a sample, the first write to each endpoint is tried. Of its other kinds of writes, one in so
/// many is.
const OTHERS: usize = 4;

/// What was found so far.
#[derive(Default)]
struct Findings {
    /// Endpoint and requests to the table of each kind of write that came; another of a kind is not
    /// tried.
    tried: BTreeSet<String>,
    /// Endpoints with a write that was tried.
    endpoints: BTreeSet<String>,
    /// Kinds of writes to them that came later.
    others: usize,
    courses: usize,
    wrong: Vec<String>,
}

impl Findings {
    /// Whether a write of this kind is tried: none of its kind was before, and it is in the sample.
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
    site: Site,
    findings: Arc<Mutex<Findings>>,
}

impl Sweep {
    /// Tries a write, unless one of its kind was tried before. Each course has a clock of its own, so that nobody waits.
    async fn of(&self, write: course::Call) {
        if write.is_read() {
            return;
        }
        // Copies are smaller so.
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

/// Users and roles are in a table of their own. Clients of this table do not see it. The tests of
/// users have one for their faults.
fn is_swept(domain: &str) -> bool {
    writes_to_the_table(domain) && domain != auth::DOMAIN.function.name
}

/// A client with a site of its own. Each domain has one: the smaller it is, the less is looked at
/// after each fault.
async fn walk(findings: &Arc<Mutex<Findings>>) -> Walk {
    let site = Site::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let sweep = Sweep { site: site.clone(), findings: Arc::clone(findings) };
    Walk::new(functions(&site.table).await.layer(from_fn(move |request: Request, next: Next| {
        let sweep = sweep.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            let call = course::Call { method: head.method.to_string(), path: head.uri.to_string(), body: text };
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
    more::writes(&mut walk).await;
    endpoints.append(&mut walk.endpoints);

    let is_write = |permission| matches!(permission, Create(_) | Update(_) | Delete(_));
    let writes = routes(|domain, endpoint| is_swept(domain.function.name) && is_write(endpoint.permission));
    let unswept: Vec<_> = writes.into_iter().filter(|route| !endpoints.contains(route)).collect();
    assert_eq!(unswept, Vec::<String>::new(), "no write is sent to these");
    let findings = findings.lock().unwrap();
    let least = if all_troubles() { 8 } else { 1 };
    assert!(findings.courses >= least * endpoints.len(), "{} courses", findings.courses);
    assert!(findings.wrong.is_empty(), "{}\n{} wrong", findings.wrong.join("\n"), findings.wrong.len());
}
