//! A power cut at any moment of any write: acknowledged writes are durable, and every write is
//! atomic.

use std::path::Path;
use std::sync::Arc;

use access::Permission::{Create, Delete, Update};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use embedded_engine::{Engine, StreamReader, client_over};
use fts_indexer::{Indexer, StreamBatch};
use mlflow_api::Workspace;
use power_cut::{DiskImage, WatchedDisk};
use serde_json::Value;
use table::Table;
use test_site::route_samples::{SAMPLES, SampleClient};
use test_site::{all_troubles, sample};
use tokio::sync::Mutex;

use crate::test_server::{TABLE, functions, routes, writes_to_the_table};

/// All items of the table, and the undelivered records of its stream. An item that changes without
/// a record would never be indexed.
#[derive(Clone, Debug, PartialEq)]
struct State {
    items: Vec<Value>,
    records: Vec<Value>,
}

impl State {
    async fn of(engine: &Engine, stream: &StreamReader) -> Self {
        Self { items: engine.items(TABLE).await.unwrap(), records: stream.oldest(1_000).await.unwrap() }
    }

    /// Returns the state that an engine finds on a disk with this content.
    async fn left(image: &DiskImage) -> Self {
        let directory = tempfile::tempdir().unwrap();
        image.write_to(directory.path()).unwrap();
        let engine = Engine::open(directory.path()).unwrap();
        let stream = engine.stream(TABLE).await.unwrap().unwrap();
        Self::of(&engine, &stream).await
    }
}

/// A client whose writes are followed by simulated power cuts: some at moments during the write,
/// and one after its acknowledgement. A sample covers an eighth of the writes. Requests are sent
/// one at a time.
#[derive(Clone)]
struct Watched(Arc<Mutex<Watch>>);

struct Watch {
    disk: WatchedDisk,
    engine: Engine,
    stream: StreamReader,
    writes: u64,
    /// Number of writes that were followed by power cuts.
    tried: usize,
    cuts: usize,
    /// All records of the stream.
    records: Vec<Value>,
}

impl Watched {
    async fn open(directory: &Path, seed: u64) -> Self {
        let disk = WatchedDisk::watch(directory, seed);
        let sync = |log: &Path| {
            WatchedDisk::sync(log);
            Ok(())
        };
        let engine = Engine::open_syncing(directory, sync).unwrap();
        Table::new(engine.client(), TABLE).create_if_missing().await.unwrap();
        let stream = engine.stream(TABLE).await.unwrap().unwrap();
        let now = State::of(&engine, &stream).await;
        assert!(State::left(&disk.cut()).await == now, "the table is missing after a power cut");
        Self(Arc::new(Mutex::new(Watch { disk, engine, stream, writes: 0, tried: 0, cuts: 0, records: Vec::new() })))
    }

    async fn table(&self) -> Table {
        let inner = self.0.lock().await.engine.http_client();
        Table::new(client_over(SharedHttpClient::new(WatchedClient { inner, watched: self.clone() })), TABLE)
    }
}

impl Watch {
    async fn call(
        &mut self,
        inner: &SharedHttpConnector,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let operation = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let is_write = operation.contains("Write")
            || ["PutItem", "UpdateItem", "DeleteItem"].iter().any(|w| operation.ends_with(w));
        if is_write {
            self.writes += 1;
            if !sample(self.writes, "PutItem", vec![()]).is_empty() {
                return self.cut(inner, request, &operation).await;
            }
        }
        let answer = inner.call(request).await;
        // Other disk images are not examined, because each image is as large as the disk.
        drop(self.disk.images());
        answer
    }

    /// Executes a write with power cuts.
    async fn cut(
        &mut self,
        inner: &SharedHttpConnector,
        request: HttpRequest,
        operation: &str,
    ) -> Result<HttpResponse, ConnectorError> {
        let before = self.deliver().await;
        // Disk images from trimming the stream are not examined.
        drop(self.disk.images());
        let answer = inner.call(request).await;
        let after = State::of(&self.engine, &self.stream).await;
        for image in self.disk.images() {
            let left = State::left(&image).await;
            assert!(left == before || left == after, "after a power cut, a {operation} was partially applied");
            self.cuts += 1;
        }
        assert!(
            State::left(&self.disk.cut()).await == after,
            "after a power cut, an acknowledged {operation} was lost"
        );
        self.tried += 1;
        answer
    }

    /// Removes all records from the stream, and returns the state without them.
    async fn deliver(&mut self) -> State {
        let mut state = State::of(&self.engine, &self.stream).await;
        if let Some(last) = state.records.last() {
            self.stream.forget_through(last["dynamodb"]["SequenceNumber"].as_str().unwrap()).await.unwrap();
        }
        self.records.append(&mut state.records);
        assert!(self.stream.oldest(1).await.unwrap().is_empty(), "there are more records than fit into one read");
        state
    }
}

#[derive(Debug)]
struct WatchedClient<C> {
    inner: C,
    watched: Watched,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Watched")
    }
}

impl HttpClient for WatchedClient<SharedHttpClient> {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(WatchedClient { inner, watched: self.watched.clone() })
    }
}

impl HttpConnector for WatchedClient<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (inner, watched) = (self.inner.clone(), self.watched.clone());
        HttpConnectorFuture::new(async move { watched.0.lock().await.call(&inner, request).await })
    }
}

#[tokio::test]
async fn every_kind_of_write_is_whole_after_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    let watched = Watched::open(directory.path(), 1).await;
    let table = watched.table().await;
    tracking::store::Store::new(table.clone(), crate::test_server::ROOT)
        .experiment_create_default(&Workspace::default())
        .await
        .unwrap();
    let mut walk = SampleClient::new(functions(&table).await);
    for samples in SAMPLES.iter().filter(|samples| writes_to_the_table(samples.domain)) {
        (samples.writes)(&mut walk).await;
    }
    let is_write = |permission| matches!(permission, Create(_) | Update(_) | Delete(_));
    let writes = routes(|domain, endpoint| writes_to_the_table(domain.function.name) && is_write(endpoint.permission));
    assert_eq!(
        writes.difference(&walk.endpoints).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "endpoints without a write"
    );

    let records = {
        let mut watch = watched.0.lock().await;
        watch.deliver().await;
        std::mem::take(&mut watch.records)
    };
    let answer = Indexer::new(table).as_only_indexer().handle(StreamBatch { records }).await;
    assert!(answer.batch_item_failures.is_empty(), "{:?}", answer.batch_item_failures);

    let watch = watched.0.lock().await;
    assert!(watch.cuts > watch.tried, "{} cuts in {} writes", watch.cuts, watch.tried);
    let least = watch.writes / if all_troubles() { 1 } else { 5 };
    assert!(watch.tried as u64 >= least, "{} of {} writes were tried", watch.tried, watch.writes);
}
