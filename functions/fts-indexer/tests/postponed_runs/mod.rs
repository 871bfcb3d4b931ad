//! When runs are indexed: at intervals while they are being logged to, immediately when they end,
//! and eventually if they are no longer logged to but were never ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use embedded_engine::StreamReader;
use entities::RunLocation;
use fts_indexer::{DEFAULT_INTERVAL, Indexer, StreamBatch};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use run_index::{RunIndex, UnmarkedRuns};
use table::{RetryPolicy, Table, Update, text};

use crate::{Site, TABLE, TIME};

/// A site with its stream, and a clock that the test advances.
struct TestIndexer {
    site: Site,
    stream: StreamReader,
    time: Arc<AtomicI64>,
}

impl TestIndexer {
    async fn new() -> Self {
        let site = Site::new().await;
        let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
        Self { site, stream, time: Arc::new(AtomicI64::new(TIME)) }
    }

    /// Returns an indexer that has just started, with empty caches.
    fn indexer(&self) -> Indexer {
        self.over(self.site.table.clone())
    }

    /// Returns an indexer with empty caches, whose requests are subject to the injected faults.
    fn faulty(&self) -> Indexer {
        let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        self.over(Table::new(self.site.faults.client(), TABLE).with_retry(impatient))
    }

    fn over(&self, table: Table) -> Indexer {
        Indexer::new(table).with_clock(self.clock())
    }

    fn clock(&self) -> impl Fn() -> i64 + Send + Sync + 'static {
        let time = Arc::clone(&self.time);
        move || time.load(Ordering::Relaxed)
    }

    fn passes(&self, time: Duration) {
        self.time.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Delivers all records of the stream to an indexer.
    async fn carry_over(&self, indexer: &Indexer) {
        let records = self.stream.oldest(1_000).await.unwrap();
        let Some(last) = records.last() else { return };
        let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
        let answer = indexer.handle(StreamBatch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
        self.stream.forget_through(&last).await.unwrap();
    }

    async fn ends(&self, at: &RunLocation) {
        use entities::MarkUpdate;
        let update = Update::new(at.key()).set("status", text("FINISHED")).marked(&at.run);
        self.site.table.update(&update).await.unwrap();
    }

    async fn is_marked(&self) -> bool {
        self.site.dump().await.into_values().any(|item| item.get(RunsChanged::INDEX.sort).is_some())
    }

    /// Counts the rows of postponed runs.
    async fn rows(&self) -> usize {
        self.site.sort_keys("DUE#").await.len()
    }

    /// Returns the indexed value of the metric, as the segment in its entry's key.
    async fn entry(&self) -> Option<String> {
        let entries = self.site.keys("M#loss ").await;
        assert!(entries.len() <= 1, "{entries:?}");
        entries.into_iter().next()
    }

    /// Creates a run that has been indexed, changed, and postponed.
    async fn put_off(&self, indexer: &Indexer) -> RunLocation {
        let at = self.site.run(1, "x").await;
        self.site.log(&at, "loss", 0, 100.0).await;
        self.carry_over(indexer).await;
        assert!(!self.is_marked().await && self.rows().await == 0, "a new run is indexed at once");
        self.site.log(&at, "loss", 1, 99.0).await;
        self.carry_over(indexer).await;
        assert!(self.is_marked().await);
        assert_eq!(self.rows().await, 1);
        at
    }

    /// Ticks and delivers records until nothing is left to do.
    async fn settles(&self) {
        let indexer = self.indexer();
        for _ in 0..4 {
            self.passes(DEFAULT_INTERVAL * 2);
            indexer.tick().await.unwrap();
            self.carry_over(&indexer).await;
        }
        assert!(!self.is_marked().await, "the run was indexed");
        assert_eq!(self.rows().await, 0, "no postponed run is left");
    }
}

/// Returns the value in the sort key of a metric's entry, which consists of value, start time and
/// run.
fn value(key: Option<String>) -> String {
    let key = key.unwrap();
    let (_, sort_key) = key.split_once(' ').unwrap();
    sort_key.split('#').next().unwrap().to_owned()
}

#[tokio::test]
async fn it_is_indexed_once_a_minute() {
    let course = TestIndexer::new().await;
    let indexer = course.indexer();
    let at = course.site.run(1, "x").await;
    let mut values = Vec::new();
    for second in 0..181_u32 {
        course.site.log(&at, "loss", second.into(), 1_000.0 - f64::from(second)).await;
        course.carry_over(&indexer).await;
        values.push(value(course.entry().await));
        course.passes(Duration::from_secs(1));
    }
    let first = values[0].clone();
    values.dedup();
    assert_eq!(values.len(), 4, "at its first metric, and after each minute");
    course.settles().await;
    assert_ne!(value(course.entry().await), first);
}

/// Once a process has cached that a run is postponed, further changes within the interval take no
/// requests.
#[tokio::test]
async fn what_was_put_off_is_remembered() {
    let course = TestIndexer::new().await;
    let indexer = course.faulty();
    let at = course.put_off(&indexer).await;
    course.site.faults.reset_calls();
    for step in 2..10 {
        course.site.log(&at, "loss", step, 0.5).await;
        course.site.log(&at, "new metric", step, 0.5).await;
        course.carry_over(&indexer).await;
    }
    let calls: u64 = course.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
    assert_eq!(calls, 0);
    // Another process reads the postponement from its first record.
    let other = course.faulty();
    for step in 10..15 {
        course.site.log(&at, "loss", step, 0.5).await;
        course.carry_over(&other).await;
    }
    let calls: u64 = course.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
    assert_eq!(calls, 1, "the run's row");
    assert_eq!(course.rows().await, 1);
}

#[tokio::test]
async fn it_is_indexed_when_it_ends() {
    let course = TestIndexer::new().await;
    let indexer = course.indexer();
    let at = course.put_off(&indexer).await;
    let before = course.entry().await;
    course.ends(&at).await;
    course.carry_over(&indexer).await;
    assert!(!course.is_marked().await);
    assert_ne!(course.entry().await, before);
    // Every change after the end is indexed as well.
    course.site.log(&at, "loss", 2, 7.0).await;
    course.carry_over(&course.indexer()).await;
    assert!(!course.is_marked().await);
    course.settles().await;
}

/// If the job of a run was killed, the stream has no more records of the run. The process that
/// postponed the run may have stopped, too. The run must be indexed nevertheless.
#[tokio::test]
async fn it_is_indexed_when_it_just_stops() {
    let course = TestIndexer::new().await;
    course.put_off(&course.indexer()).await;
    let before = course.entry().await;
    let indexer = course.indexer();
    course.passes(DEFAULT_INTERVAL / 2);
    indexer.tick().await.unwrap();
    course.carry_over(&indexer).await;
    assert!(course.is_marked().await && course.rows().await == 1, "the run is not due yet");
    course.passes(DEFAULT_INTERVAL);
    indexer.tick().await.unwrap();
    assert_eq!(course.rows().await, 0);
    course.carry_over(&indexer).await;
    assert!(!course.is_marked().await);
    assert_ne!(course.entry().await, before);
    course.settles().await;
}

/// A delayed tick finds that the run has been indexed in the meantime, and does not request
/// indexing again.
#[tokio::test]
async fn a_tick_has_only_those_indexed_that_need_it() {
    let course = TestIndexer::new().await;
    let indexer = course.indexer();
    let at = course.put_off(&indexer).await;
    course.passes(DEFAULT_INTERVAL);
    course.site.log(&at, "loss", 2, 98.0).await;
    course.carry_over(&indexer).await;
    assert!(!course.is_marked().await, "the run was due");
    course.site.log(&at, "loss", 3, 97.0).await;
    course.carry_over(&indexer).await;
    course.passes(DEFAULT_INTERVAL / 3);
    let before = course.entry().await;
    indexer.tick().await.unwrap();
    course.carry_over(&indexer).await;
    assert_eq!((course.entry().await, course.rows().await), (before, 1), "the row for its next due time is kept");
    course.settles().await;
}

/// One process has cached that a run was postponed, and another process has indexed the end of the
/// run in the meantime.
#[tokio::test]
async fn what_one_process_remembers_another_may_have_done() {
    let course = TestIndexer::new().await;
    let (first, second) = (course.indexer(), course.indexer());
    let at = course.put_off(&first).await;
    course.ends(&at).await;
    course.carry_over(&second).await;
    assert!(!course.is_marked().await);
    course.site.log(&at, "loss", 2, 5.0).await;
    course.carry_over(&first).await;
    assert!(!course.is_marked().await, "the record shows that the run has ended, despite the first process's cache");
    course.settles().await;
}

#[tokio::test]
async fn a_run_that_is_gone_has_no_row_for_long() {
    let course = TestIndexer::new().await;
    let at = course.put_off(&course.indexer()).await;
    course.site.table.write_many(Vec::new(), &[at.key()]).await.unwrap();
    course.settles().await;
    assert!(course.site.keys(at.run.as_str()).await.is_empty());
}

/// A rebuild does not wait for the interval.
#[tokio::test]
async fn a_rebuild_puts_nothing_off() {
    let course = TestIndexer::new().await;
    let indexer = course.indexer();
    let at = course.put_off(&indexer).await;
    let index = RunIndex::new(course.site.table.clone());
    let mut left = index.mark_runs(&mut UnmarkedRuns::all(at.experiment), 1).await.unwrap();
    course.carry_over(&indexer).await;
    index.drop_rebuilt(at.experiment, &mut left).await.unwrap();
    assert!(left.is_empty() && !course.is_marked().await);
}

/// Wherever a tick is interrupted, the next tick does the remaining work.
#[tokio::test]
async fn a_tick_may_stop_anywhere() {
    let mut whole = 0;
    for request in 1..=10 {
        let course = TestIndexer::new().await;
        course.put_off(&course.indexer()).await;
        course.passes(DEFAULT_INTERVAL * 2);
        course.site.faults.cut_off_at(request);
        whole += usize::from(course.faulty().tick().await.is_ok());
        course.site.faults.work_again();
        assert!(course.is_marked().await);
        course.settles().await;
    }
    assert!(whole > 0 && whole < 10, "some were interrupted, some were not");
}

/// Pauses a tick before each of its requests, and meanwhile changes the run, which the indexer then
/// indexes or postpones. Also pauses the indexer before each of its requests, and meanwhile runs a
/// tick.
#[tokio::test]
async fn a_tick_and_the_indexer_may_meet_anywhere() {
    const REQUESTS: [&str; 5] = ["Query", "BatchGetItem", "BatchWriteItem", "UpdateItem", "PutItem"];
    let mut met = 0;
    for (tick_waits, ends, request) in [true, false]
        .into_iter()
        .flat_map(|a| [true, false].map(|b| (a, b)))
        .flat_map(|(a, b)| REQUESTS.map(|c| (a, b, c)))
    {
        let course = TestIndexer::new().await;
        let at = course.put_off(&course.indexer()).await;
        course.passes(DEFAULT_INTERVAL * 2);
        course.site.log(&at, "loss", 2, 3.0).await;
        if ends {
            course.ends(&at).await;
        }
        let mut gate = course.site.faults.pause_before(request, 1);
        let held = course.faulty();
        let mut waits = std::pin::pin!(async {
            if tick_waits { held.tick().await.unwrap() } else { course.carry_over(&held).await }
        });
        let passes = async {
            if tick_waits {
                course.carry_over(&course.indexer()).await;
            } else {
                course.indexer().tick().await.unwrap();
            }
        };
        tokio::select! {
            () = gate.reached() => {
                met += 1;
                passes.await;
                gate.open();
                waits.await;
            }
            // This branch is taken if the pass makes no such request.
            () = &mut waits => passes.await,
        }
        course.site.log(&at, "loss", 4, 1.0).await;
        course.carry_over(&course.indexer()).await;
        course.settles().await;
        let last = value(course.entry().await);
        let expected = key_schema::Segment::text(&key_schema::DescendingDouble(1.0));
        assert_eq!(last, expected, "{request} {tick_waits} {ends}: the index contains the value that was logged last");
    }
    assert_eq!(met, 18, "of 20: two of the requests are never made");
}
