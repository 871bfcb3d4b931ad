//! The environment of the jobs: the functions' sandboxes, a table with DynamoDB's limits, and the
//! indexer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use domain::Function;
use embedded_engine::limits::{EngineLimits, Throughput};
use embedded_engine::{Engine, client_over};
use entities::attributes::SHARDS as SHARDS_OF_DAY;
use futures::task::LocalSpawnExt;
use futures_executor::LocalSpawner;
use key_schema::{Ascending, rows};
use mlflow_api::{ExperimentId, Workspace};
use rand::RngExt;
use runtime::clock::Moment;
use serde_json::{Value, json};
use table::{Condition, Item, Table, number};
use tempfile::TempDir;

use crate::call_counts::{CallCounts, CallKind};
use crate::compute::CpuRule;
use crate::executor::{BusyCounter, sleep_until};
use crate::gateway::{Gateway, RequestLimit};
use crate::indexing_lag::IndexingLag;
use crate::lambda_sandboxes::{self, ARTIFACT_ROOT, ClientCall, LambdaSandboxes};
use crate::load::Load;
use crate::network;
use crate::partitions::{PartitionKind, PartitionMeter};
use crate::stream_delivery::{IndexerWork, SHARD_COUNT, StreamDelivery};
use crate::{Failure, Result};

const TABLE: &str = "mlflow";
/// Maximum number of times that MLflow's client sends a request, including the first.
const MAX_ATTEMPTS: u32 = 8;

/// Settings of a simulated stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackSettings {
    pub(crate) load: Load,
    /// Throughput of each partition.
    pub(crate) throughput: Throughput,
    /// Requests that the gateway accepts.
    pub(crate) requests: RequestLimit,
    /// Memory of the indexer, in MB.
    pub(crate) indexer_memory: u32,
}

pub(crate) struct SimulatedStack {
    begin: Moment,
    spawner: LocalSpawner,
    busy: BusyCounter,
    engine: Engine,
    limits: EngineLimits,
    /// The indexer's handle to the table.
    table: Table,
    pub(crate) rule: CpuRule,
    gateway: Gateway,
    pub(crate) sandboxes: LambdaSandboxes,
    /// Id of the only experiment.
    pub(crate) experiment: String,
    pub(crate) tally: RefCell<CallCounts>,
    pub(crate) lag: IndexingLag,
    pub(crate) partitions: PartitionMeter,
    feed: StreamDelivery,
    /// The first failure of a spawned task, which aborts the model.
    failure: RefCell<Option<Failure>>,
    _directory: TempDir,
}

impl SimulatedStack {
    /// Creates a table with one experiment and no runs.
    pub(crate) async fn new(spawner: LocalSpawner, busy: BusyCounter, settings: StackSettings) -> Result<Rc<Self>> {
        let StackSettings { load, throughput, requests, indexer_memory } = settings;
        let rule = CpuRule::read()?;
        let begin = Moment::now();
        // An in-memory database of the engine is limited to a gigabyte, so a directory is used. It
        // is on a file system in memory if possible, so that nothing waits for a disk.
        let in_memory = Path::new("/dev/shm");
        let directory = if in_memory.is_dir() { tempfile::tempdir_in(in_memory)? } else { tempfile::tempdir()? };
        let engine = Engine::open(directory.path())?;
        let limits = EngineLimits::with_clock(&engine, move || begin.age());
        let table = Table::new(client_over(network::with_latency(limits.http_client(), busy.clone())), TABLE);
        let created = busy.during(Table::new(engine.client(), TABLE).create_if_missing()).await;
        created.map_err(|failure| format!("{failure:?}"))?;
        let store = tracking::store::Store::new(table.clone(), ARTIFACT_ROOT);
        store.experiment_create_default(&Workspace::default()).await.map_err(|error| error.to_string())?;
        let tracking =
            LambdaSandboxes::new(table.clone(), lambda_sandboxes::tracking, rule, Function::DEFAULT_MEMORY_MB);
        let created = tracking.call(&ClientCall::json("experiments/create", &json!({ "name": "experiment" }))).await?;
        let sandboxes = match load {
            Load::Traces { .. } => {
                LambdaSandboxes::new(table.clone(), lambda_sandboxes::traces, rule, Function::DEFAULT_MEMORY_MB)
            }
            _ => tracking,
        };
        let experiment = created.body["experiment_id"].as_str().ok_or("the experiment was not created")?.to_owned();
        if let Load::Traces { partitions, .. } = load {
            let id = ExperimentId::parse(&experiment).map_err(|error| error.message)?;
            let yesterday = Ascending(runtime::clock::now_ms().div_euclid(86_400_000) - 1);
            let row =
                Item::new(rows::TraceDay::key(&id, &yesterday)).with(SHARDS_OF_DAY, number(i64::from(partitions)));
            let put = busy.during(Table::new(engine.client(), TABLE).put(row, &Condition::Always)).await;
            put.map_err(|failure| format!("{failure:?}"))?;
        }
        limits.set_throughput(move |_| Some(throughput));
        Ok(Rc::new(Self {
            begin,
            spawner,
            busy,
            engine,
            limits,
            table,
            rule,
            gateway: Gateway::new(requests),
            sandboxes,
            experiment,
            tally: RefCell::default(),
            lag: IndexingLag::default(),
            partitions: PartitionMeter::default(),
            feed: StreamDelivery::new(begin, rule, load, indexer_memory),
            failure: RefCell::default(),
            _directory: directory,
        }))
    }

    /// Returns the simulated time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.begin.age()
    }

    pub(crate) async fn sleep_until(&self, until: Duration) {
        sleep_until(&self.begin, until).await;
    }

    /// Starts a task. If it fails, the model is aborted.
    pub(crate) fn spawn(self: &Rc<Self>, task: impl AsyncFnOnce(&Rc<Self>) -> Result<()> + 'static) -> Result<()> {
        let world = Rc::clone(self);
        let task = async move {
            if let Err(failure) = task(&world).await {
                world.failure.borrow_mut().get_or_insert(failure);
            }
        };
        Ok(self.spawner.spawn_local(task)?)
    }

    /// Starts delivering the stream to the indexer.
    pub(crate) async fn begin_feed(self: &Rc<Self>) -> Result<()> {
        let stream = self.busy.during(self.engine.stream(TABLE)).await?.ok_or("another process reads the stream")?;
        self.spawn(async |world| world.feed.read(stream, world.busy.clone(), &world.lag).await)?;
        for shard in 0..SHARD_COUNT {
            self.spawn(async move |world| world.feed.deliver(shard, &world.table, &world.lag, &world.tally).await)?;
        }
        self.spawn(async |world| world.feed.tick(&world.table, &world.tally).await)
    }

    /// Posts to a path below `/api/2.0/mlflow/`, with the retries of [`SimulatedStack::send`].
    pub(crate) async fn post(&self, call: CallKind, path: &str, body: &Value) -> Result<Option<Value>> {
        self.send(call, &ClientCall::json(path, body)).await
    }

    /// Sends a call with the retries of MLflow's client. Returns the response, or `None` if the
    /// client gives up.
    pub(crate) async fn send(&self, call: CallKind, asked: &ClientCall) -> Result<Option<Value>> {
        for attempt in 0..MAX_ATTEMPTS {
            let back_off = Duration::from_secs(1 << attempt) + Duration::from_secs_f64(rand::rng().random());
            if !self.gateway.accepts() {
                self.tally.borrow_mut().count_refused(call);
                // A refusal by the gateway has no `Retry-After` header.
                runtime::clock::sleep(back_off).await;
                continue;
            }
            let answer = self.sandboxes.call(asked).await?;
            {
                let mut tally = self.tally.borrow_mut();
                tally.count(call, answer.status, &answer.usage, answer.lasted);
                tally.add_compute(call, answer.computed, self.rule.of_call(&answer.usage));
                if let Some(usage) = answer.cold_start {
                    tally.count(CallKind::ColdStart, 200, &usage, Duration::ZERO);
                }
            }
            if answer.status == 200 {
                return Ok(Some(answer.body));
            }
            if answer.status != 429 && answer.status < 500 {
                return Err(format!("{}: {} {}", asked.path, answer.status, answer.body).into());
            }
            runtime::clock::sleep(answer.retry_after.unwrap_or(back_off)).await;
        }
        self.tally.borrow_mut().count_given_up(call);
        Ok(None)
    }

    /// Lets simulated time pass, and calls `passed` after each second. Returns the number of
    /// waiting records at the end of each second.
    pub(crate) async fn advance(&self, time: Duration, passed: &impl Fn()) -> Result<Vec<f64>> {
        let begin = self.now();
        let mut queue = Vec::new();
        for second in 1..=u32::try_from(time.as_secs())? {
            self.sleep_until(begin + Duration::from_secs(1) * second).await;
            self.partitions.record_second(&self.limits);
            queue.push(f64::from(u32::try_from(self.feed.waiting())?));
            passed();
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
        Ok(queue)
    }

    /// Starts a new measurement. Returns the calls up to now.
    pub(crate) fn reset(&self) -> CallCounts {
        self.lag.reset();
        self.feed.reset();
        self.partitions.reset(&self.limits);
        self.tally.take()
    }

    /// Returns the work of each shard's indexer since the start of the measurement.
    pub(crate) fn indexer_work(&self) -> Vec<IndexerWork> {
        self.feed.work()
    }

    /// Returns the consumption of partitions since the start of the measurement, and their current
    /// sizes.
    pub(crate) async fn kinds(&self) -> Result<BTreeMap<String, PartitionKind>> {
        let mut kinds = self.partitions.kinds();
        for (name, partitions) in self.partitions.measured_partitions() {
            let Some(kind) = kinds.get_mut(&name) else { continue };
            for partition in partitions {
                let bytes = self.busy.during(self.limits.collection_bytes(TABLE, &partition)).await?;
                kind.largest_bytes = kind.largest_bytes.max(Some(bytes));
            }
        }
        Ok(kinds)
    }
}
