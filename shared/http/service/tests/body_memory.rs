//! Memory limits for the request bodies of many concurrent clients.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use access::{AllowAll, Needs, Permission, Scope};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use http::StatusCode;
use http::header::RETRY_AFTER;
use mlflow_api::{Request, Result};
use serde_json::{Value, json};
use service::{DomainStore, Endpoint, FunctionContext, Route, router};
use table::Table;
use tokio::sync::{Notify, Semaphore};
use tower::ServiceExt;

const MB: usize = 1 << 20;
/// Maximum total bytes of bodies that are processed concurrently. A longer body is processed alone.
const MAX_PROCESSING_BYTES: usize = 16 * MB;
/// Maximum size of a body in bytes.
const MAX_BODY_BYTES: usize = 32 * MB;

/// Signals the end of the test. The requests that [`Hold`] still holds respond then.
static END: Notify = Notify::const_new();

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static MAX_HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
struct NoStore(Table);

impl DomainStore for NoStore {
    fn table(&self) -> &Table {
        &self.0
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}

/// An endpoint that counts the bytes of its body, and holds them for a time or until [`END`].
struct Hold {
    bytes: usize,
    time: Option<Duration>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Endpoint for Hold {
    type Store = NoStore;
    type Answer = Value;

    fn read(request: &Request) -> Result<Self> {
        let bytes = request.body.len();
        let held = HELD_BYTES.fetch_add(bytes, Ordering::SeqCst) + bytes;
        MAX_HELD_BYTES.fetch_max(held, Ordering::SeqCst);
        let time = request.argument("ms").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        Ok(Self { bytes, time })
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, _: &Scope, _: &NoStore) -> Result<Value> {
        match self.time {
            Some(time) => tokio::time::sleep(time).await,
            None => END.notified().await,
        }
        Ok(json!(self.bytes))
    }
}

async fn send(hold: &str, encoding: &str, body: Body) -> Response {
    // Shared by all requests, so that creating an engine does not delay pending ones.
    static FRAME: LazyLock<FunctionContext<NoStore>> = LazyLock::new(|| {
        let engine = embedded_engine::Engine::memory().unwrap();
        FunctionContext::new(NoStore(Table::new(engine.client(), "none")), Arc::new(AllowAll))
    });
    let routes = vec![Route::to::<Hold>("POST", "hold", Permission::SignedIn).with_retry_after(1..=3)];
    let request = http::Request::post(format!("/api/2.0/mlflow/hold?ms={hold}")).header("content-encoding", encoding);
    router(routes, &FRAME).oneshot(request.body(body).unwrap()).await.unwrap()
}

/// Returns a body of this many MB that arrives in pieces.
fn pieces(megabytes: usize) -> Body {
    let piece = Bytes::from(vec![b'x'; MB]);
    Body::from_stream(stream::iter(std::iter::repeat_n(piece, megabytes)).map(Ok::<_, std::io::Error>))
}

/// Returns a body that sends one MB and then stalls until `end` is notified.
fn unfinished(begun: Arc<Semaphore>, end: Arc<Notify>) -> Body {
    let end = async move {
        begun.add_permits(1);
        end.notified().await;
    };
    let no_more = stream::once(end).filter_map(|()| std::future::ready(None));
    Body::from_stream(stream::iter([Bytes::from(vec![b'x'; MB])]).chain(no_more).map(Ok::<_, std::io::Error>))
}

/// Checks that a long body waits, is drained and rejected with `Retry-After`, while a small one
/// passes.
async fn only_small_ones_pass(long: Bytes) {
    let small = Body::from(vec![b'x'; 60 << 10]);
    let (refused, small) = tokio::join!(send("0", "identity", Body::from(long)), send("0", "identity", small));
    assert_eq!((refused.status(), small.status()), (StatusCode::TOO_MANY_REQUESTS, StatusCode::OK));
    let seconds: u32 = refused.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=3).contains(&seconds));
}

/// All cases are in one test, because the limits apply to the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_of_many_clients_wait_for_room() {
    let whole = Bytes::from(vec![b'x'; 8 * MB]);
    let requests = (0..24).map(|number| {
        let body = if number % 2 == 0 { Body::from(whole.clone()) } else { pieces(8) };
        send("20", "identity", body)
    });
    let answers = join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK));
    let most = MAX_HELD_BYTES.swap(0, Ordering::SeqCst);
    assert!(most > 8 * MB && most <= MAX_PROCESSING_BYTES, "{most} bytes were in memory");

    // The last four bytes of gzip data are its uncompressed length, here 32 MB.
    let packed = Bytes::from([vec![0; 100 << 10], vec![0, 0, 0, 2]].concat());
    let packed = join_all((0..6).map(|_| send("20", "gzip", Body::from(packed.clone())))).await;
    assert!(packed.iter().all(|answer| answer.status() == StatusCode::OK));
    let most = MAX_HELD_BYTES.swap(0, Ordering::SeqCst);
    assert_eq!(most, (100 << 10) + 4, "one body at a time, because each expands to 320 times its size");

    // One client takes all of the capacity.
    let holder = tokio::spawn(send("end", "identity", pieces(32)));
    while HELD_BYTES.load(Ordering::SeqCst) < MAX_BODY_BYTES {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    only_small_ones_pass(whole.clone()).await;
    END.notify_one();
    assert_eq!(holder.await.unwrap().status(), StatusCode::OK);

    // Two clients announce no length and do not finish their bodies, so they hold reservations.
    // Another client that announces no length but sends a small body needs no reservation.
    let (begun, end) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let senders = [(); 2].map(|()| send("0", "identity", unfinished(begun.clone(), end.clone())));
    let senders = tokio::spawn(join_all(senders));
    begun.acquire_many(2).await.unwrap().forget();
    let brief = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"brief"))]));
    assert_eq!(send("0", "identity", brief).await.status(), StatusCode::OK);
    only_small_ones_pass(whole.clone()).await;
    end.notify_waiters();
    assert!(senders.await.unwrap().iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(send("0", "identity", Body::from(whole)).await.status(), StatusCode::OK);
    assert_eq!(HELD_BYTES.load(Ordering::SeqCst), 0);
}
