//! A per-process cache of the runs that the process logs metrics to.
//!
//! A call that logs points avoids writing to the run's document, because the documents of all runs
//! are in the experiment's partition. This requires that the run is active, and that the run's mark
//! is not about to be removed, because searches and readers find the points in the journal only by
//! the mark. A process reads the stage and the mark of a run at most once per lease.
//!
//! A request that deletes a run returns only after all earlier leases have expired. The same
//! protocol applies to experiments (`docs/adr/0004-leases.md`). `docs/adr/0031-journal.md`
//! describes who may remove the mark, and when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::attributes::{CALLS, STAGE, STAGE_VERSION};
use entities::journal::{SealedSegments, Series, StepCall, pack_call};
use entities::{IndexingState, MARK_RELIANCE_DURATION, Moment, Reliance, RunLocation, metric_of};
use key_schema::{Digest, Key, WideDigest, rows};
use table::Item;

/// Maximum number of bytes of points that a run's first calls put into the run's document. The size
/// is small because every change of the document is billed by its total size.
pub const MAX_DOCUMENT_POINT_BYTES: usize = 1 << 10;
/// Maximum number of metrics that one update adds to the document. An update expression can have up
/// to 4 KB.
const MAX_INLINE_METRICS: usize = 60;
/// Number of bytes that one write unit covers.
const WRITE_UNIT_BYTES: usize = 1 << 10;
/// Minimum size, in bytes, of a call's entry in the journal for which the names of the call's
/// metrics may be stored in a separate row. Without the names, an entry of this size takes about half
/// as many bytes, so that a tail has room for more calls and fewer tails have to be deleted. After some
/// twenty calls, this has saved more write units than the row costs.
const MIN_NAMES_ROW_BYTES: usize = 128;
/// Number of bytes in the journal after which a process requests packing of a run, if it has also
/// added enough calls. Bytes and calls are counted since the last packing, or since the process's
/// own last request. The threshold is a trade-off: readers have to read the unpacked bytes, while
/// the cost of packing and indexing depends on the number of metrics.
const PACKING_BYTES: usize = 96 << 10;
const PACKING_CALLS: usize = 100;
/// Number of bytes after which the process requests packing regardless of the number of calls.
const MAX_UNPACKED_BYTES: usize = 4 << 20;
/// Capacity of the cache. When it is full, runs that have not been accessed within `MIN_IDLE_TIME`
/// are evicted. If it is still full after that, the cache is cleared.
const MAX_RUNS: usize = 10_000;
const MIN_IDLE_TIME: Duration = Duration::from_mins(1);
/// Maximum number of distinct sets of metric names per run that a process writes rows for. Rows of
/// names are permanent, and every reader of the journal reads them.
const MAX_NAMES_ROWS: usize = 8;

/// The state of a run when the process last read it.
#[derive(Clone, Debug)]
pub(crate) struct CachedRun {
    since: Moment,
    /// The attributes of the run's document that determine the run's lifecycle stage.
    pub(crate) stage: Item,
    /// How many calls have marked the run as having points in its journal. `None` if the run has no
    /// journal.
    journal_marks: Option<i64>,
    reliance: Reliance,
    /// How many times the run's journal was packed. `None` if it was never packed.
    packed: Option<i64>,
    /// Number of bytes of points in the run's document.
    inline: usize,
}

impl CachedRun {
    /// Extracts the cached state from a run's document. `since` is when the read or write of the
    /// document started.
    pub(crate) fn of(since: Moment, run: &Item) -> Self {
        let stage = [STAGE.name(), STAGE_VERSION.name()].into_iter().filter_map(|name| run.0.get_key_value(name));
        let stage = Item(stage.map(|(name, value)| (name.clone(), value.clone())).collect());
        let points = run.0.iter().filter(|(name, _)| metric_of(name).is_some());
        let points = Item(points.map(|(name, value)| (name.clone(), value.clone())).collect());
        let IndexingState { journal_marks, reliance, packed, .. } = IndexingState::of(run);
        Self { since, stage, journal_marks, reliance, packed, inline: points.size() }
    }

    /// Checks whether no points have been logged to the run.
    pub(crate) fn is_empty(&self) -> bool {
        self.inline == 0 && self.journal_marks.is_none() && self.packed.is_none()
    }

    /// Checks whether the document has room for these points, given a maximum of `most` bytes of
    /// points. Returns `false` while calls rely on the run's mark.
    pub(crate) fn fits_in_document(&self, series: &Series, most: usize) -> bool {
        let size = |(metric, points): (&String, &Vec<_>)| metric.len() + 2 + points.len() * 19;
        let size: usize = series.iter().map(size).sum();
        self.reliance != Reliance::Open && series.len() <= MAX_INLINE_METRICS && self.inline + size <= most
    }

    /// Checks whether the run's mark is certain to stay for now, so that readers will find points
    /// that are added to the journal without marking the run again.
    pub(crate) fn mark_stays(&self) -> bool {
        self.reliance == Reliance::Open && self.since.age() < MARK_RELIANCE_DURATION
    }

    /// Checks whether later calls may rely on the mark that the next call writes. This requires
    /// that an earlier call has marked the run, because further calls are then likely.
    pub(crate) fn may_be_relied_on(&self) -> bool {
        self.journal_marks.is_some_and(|marks| marks > 0)
    }
}

/// A call's addition to the journal.
pub(crate) struct JournalAddition {
    /// Key of the item that the call is added to: the current tail of the journal, or an item for
    /// this call only.
    pub(crate) tail: Key,
    /// Whether the item contains only this call. Such an item is written with a put, and no other
    /// call is ever added to it.
    pub(crate) is_alone: bool,
    /// The element to add to the set of calls.
    pub(crate) element: Vec<u8>,
    /// The row with the names of metrics that the element refers to, if it does. The row has to be
    /// written before the element.
    pub(crate) names: Option<(WideDigest, Item)>,
    /// Whether the amount of unpacked data is so large that the run should be packed soon.
    pub(crate) asks_for_packing: bool,
}

/// The runs that this process logs to. Cheap to clone. Clones share the cache.
#[derive(Clone)]
pub(crate) struct RunCache {
    length: Duration,
    // A `std` mutex, because nothing is awaited while it is locked.
    entries: Arc<Mutex<HashMap<RunLocation, CacheEntry>>>,
}

/// The cached state of a run.
struct CacheEntry {
    run: CachedRun,
    tail: Digest,
    tail_bytes: usize,
    unpacked: usize,
    /// Whether the row of a set of metric names has been written, by hash of the names. The first
    /// call with a set of names stores the names in the journal itself, because the set may never
    /// be used again.
    names: HashMap<WideDigest, bool>,
}

impl RunCache {
    /// Creates a cache with leases of this length. All processes that share a table must use the
    /// same length.
    pub(crate) fn new(length: Duration) -> Self {
        Self { length, entries: Arc::default() }
    }

    /// Returns the state of a run if the lease on it is valid.
    pub(crate) fn get(&self, at: &RunLocation) -> Option<CachedRun> {
        let held = self.entries();
        held.get(at).map(|held| &held.run).filter(|run| run.since.age() < self.length).cloned()
    }

    /// Starts a lease on an active run.
    pub(crate) fn keep(&self, at: &RunLocation, run: CachedRun) {
        let mut held = self.entries();
        if held.len() >= MAX_RUNS {
            held.retain(|_, held| held.run.since.age() < MIN_IDLE_TIME);
            if held.len() >= MAX_RUNS {
                held.clear();
            }
        }
        match held.get_mut(at) {
            Some(known) => {
                if known.run.packed != run.packed {
                    known.unpacked = 0;
                }
                known.run = run;
            }
            None => {
                held.insert(at.clone(), CacheEntry::new(run));
            }
        }
    }

    /// Waits until no process relies on the run's earlier state.
    pub(crate) async fn wait_out(&self, at: &RunLocation) {
        self.entries().remove(at);
        runtime::clock::sleep(self.length).await;
    }

    /// Returns how to add the points of a call to the journal.
    pub(crate) fn journal_addition(
        &self,
        at: &RunLocation,
        run: &CachedRun,
        series: &Series,
        sealed: &SealedSegments,
    ) -> JournalAddition {
        let mut runs = self.entries();
        let held = runs.entry(at.clone()).or_insert_with(|| CacheEntry::new(run.clone()));
        let (element, names) = held.element(at, series, sealed);
        let size = element.len() + 1;
        let empty = |tail: &Digest| Item::new(rows::MetricJournal::key(&at.run, tail)).size() + CALLS.name().len() + 3;
        let own = new_tail();
        // True if a tail has no room for two elements of this size.
        let is_alone = empty(&own) + 2 * size > WRITE_UNIT_BYTES;
        if !is_alone {
            if held.tail_bytes + size > WRITE_UNIT_BYTES {
                held.tail = own;
                held.tail_bytes = empty(&own);
            }
            held.tail_bytes += size;
        }
        held.unpacked += size;
        let asks_for_packing = held.unpacked >= PACKING_BYTES.max(PACKING_CALLS * size).min(MAX_UNPACKED_BYTES);
        if asks_for_packing {
            held.unpacked = 0;
        }
        let tail = if is_alone {
            rows::JournalCall::key(&at.run, &own)
        } else {
            rows::MetricJournal::key(&at.run, &held.tail)
        };
        JournalAddition { tail, is_alone, element, names, asks_for_packing }
    }

    /// Records that the row of a set of names was written.
    pub(crate) fn names_are_there(&self, at: &RunLocation, names: WideDigest) {
        if let Some(held) = self.entries().get_mut(at) {
            held.names.insert(names, true);
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<RunLocation, CacheEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheEntry {
    fn new(run: CachedRun) -> Self {
        // The initial tail is recorded as full, so that the first call starts a new one.
        Self { run, tail: Digest(0), tail_bytes: WRITE_UNIT_BYTES, unpacked: 0, names: HashMap::new() }
    }

    /// Returns the journal element of a call. If the element refers to a row of metric names that
    /// might not exist yet, also returns this row.
    fn element(
        &mut self,
        at: &RunLocation,
        series: &Series,
        sealed: &SealedSegments,
    ) -> (Vec<u8>, Option<(WideDigest, Item)>) {
        let packed = pack_call(series, sealed);
        let step = if packed.len() > MIN_NAMES_ROW_BYTES && sealed.is_empty() { StepCall::of(series) } else { None };
        let Some(step) = step else { return (packed, None) };
        if self.names.len() >= MAX_NAMES_ROWS && !self.names.contains_key(&step.names) {
            return (packed, None);
        }
        match self.names.get(&step.names) {
            None => {
                self.names.insert(step.names, false);
                (packed, None)
            }
            Some(false) => {
                let row = step.names_row(&at.run);
                let names = step.names;
                (step.into_element(), Some((names, row)))
            }
            Some(true) => (step.into_element(), None),
        }
    }
}

fn new_tail() -> Digest {
    Digest(rand::random())
}
