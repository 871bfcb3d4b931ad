//! A process's knowledge of the runs that it logs metrics to.
//!
//! A call that logs points avoids writing to the run's document. The document is in the
//! experiment's partition, with those of all its runs. So the call has to know two things, which a
//! process reads at most once per lease. The run must be active. And its mark must stay for now, as
//! searches and readers find the points in the journal by it.
//!
//! A request that deletes a run answers only when all earlier leases have run out, as for
//! experiments (`docs/adr/0004-leases.md`). `docs/adr/0031-journal.md` says who may take the mark
//! off, and when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::attributes::{CALLS, STAGE, STAGE_VERSION};
use entities::journal::{Sealed, Series, Step, pack_call};
use entities::{IndexingState, MARK_STAYS, Moment, Reliance, RunLocation, metric_of};
use key_schema::{Digest, Key, WideDigest, rows};
use table::Item;

/// Bytes of points that a run's document takes, of its first calls together. Each change of the document is paid for by its size.
pub(crate) const POINTS_IN_DOCUMENT: usize = 1 << 10;
/// Metrics that the document takes in one update: an expression has 4 KB.
const INLINE_METRICS: usize = 60;
/// Bytes that a write unit pays for.
const WRITE_UNIT: usize = 1 << 10;
/// Bytes of an element from which on names are worth a row of their own.
const MANY_NAMES: usize = 768;
/// A process asks for a run to be packed once it has added this many bytes and calls to the
/// journal. It counts from the last packing, or from its last request for one. Readers have to read
/// these bytes; packing and indexing cost by the number of metrics.
const UNPACKED_BYTES: usize = 96 << 10;
const UNPACKED_CALLS: usize = 100;
/// Bytes after which it asks in any case.
const MOST_UNPACKED: usize = 4 << 20;
/// Runs remembered at a time; beyond that, those not used for a while are forgotten, then all.
const MOST_RUNS: usize = 10_000;
const UNUSED: Duration = Duration::from_mins(1);
/// Sets of names of a run that a process writes rows of, at most. The rows stay, and every reader
/// of the journal reads them.
const MOST_NAMES: usize = 8;

/// A run as a process read it.
#[derive(Clone, Debug)]
pub(crate) struct LoggedRun {
    since: Moment,
    /// The attributes of its document about its lifecycle stage.
    pub(crate) stage: Item,
    /// How many calls have marked it for the journal, if it has one.
    journal_marks: Option<i64>,
    reliance: Reliance,
    /// How often its journal was packed, if it was.
    packed: Option<i64>,
    /// Bytes of points in the document.
    inline: usize,
}

impl LoggedRun {
    /// A run's document whose reading, or writing, began then.
    pub(crate) fn of(since: Moment, run: &Item) -> Self {
        let stage = [STAGE.name(), STAGE_VERSION.name()].into_iter().filter_map(|name| run.0.get_key_value(name));
        let stage = Item(stage.map(|(name, value)| (name.clone(), value.clone())).collect());
        let points = run.0.iter().filter(|(name, _)| metric_of(name).is_some());
        let points = Item(points.map(|(name, value)| (name.clone(), value.clone())).collect());
        let IndexingState { journal_marks, reliance, packed, .. } = IndexingState::of(run);
        Self { since, stage, journal_marks, reliance, packed, inline: points.size() }
    }

    /// Whether no points were logged to it.
    pub(crate) fn is_empty(&self) -> bool {
        self.inline == 0 && self.journal_marks.is_none() && self.packed.is_none()
    }

    /// Whether the document has room for these points, where it takes so many bytes of them.
    pub(crate) fn takes(&self, series: &Series, most: usize) -> bool {
        let size = |(metric, points): (&String, &Vec<_>)| metric.len() + 2 + points.len() * 19;
        let size: usize = series.iter().map(size).sum();
        self.reliance != Reliance::Open && series.len() <= INLINE_METRICS && self.inline + size <= most
    }

    /// Whether points that were added to the journal are found without a mark for them.
    pub(crate) fn mark_stays(&self) -> bool {
        self.reliance == Reliance::Open && self.since.age() < MARK_STAYS
    }

    /// Whether calls may rely on the next mark: one has marked the run before, and there will be more.
    pub(crate) fn may_be_relied_on(&self) -> bool {
        self.journal_marks.is_some_and(|marks| marks > 0)
    }
}

/// Where a call's points go.
pub(crate) struct Addition {
    /// The tail.
    pub(crate) tail: Key,
    /// Whether it is the only call in it, and stays that: it is put, and nothing has to be read for it.
    pub(crate) is_alone: bool,
    /// The element of it.
    pub(crate) element: Vec<u8>,
    /// The names it refers to, to be written before.
    pub(crate) names: Option<(WideDigest, Item)>,
    /// Whether so much waits that it should be packed soon.
    pub(crate) asks_for_packing: bool,
}

/// The runs that this process logs to. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub(crate) struct LoggedRuns {
    length: Duration,
    // A std mutex: nothing is awaited while it is held.
    held: Arc<Mutex<HashMap<RunLocation, Held>>>,
}

/// The cached state of a run.
struct Held {
    run: LoggedRun,
    tail: Digest,
    tail_bytes: usize,
    unpacked: usize,
    /// Hashes of names, and whether their row is there. The first call with them has them in itself: it may be the only one.
    names: HashMap<WideDigest, bool>,
}

impl LoggedRuns {
    /// With leases of this length; every process on one table needs the same.
    pub(crate) fn new(length: Duration) -> Self {
        Self { length, held: Arc::default() }
    }

    /// The run as it was read, while the lease on it lasts.
    pub(crate) fn get(&self, at: &RunLocation) -> Option<LoggedRun> {
        let held = self.held();
        held.get(at).map(|held| &held.run).filter(|run| run.since.age() < self.length).cloned()
    }

    /// Begins a lease on an active run.
    pub(crate) fn keep(&self, at: &RunLocation, run: LoggedRun) {
        let mut held = self.held();
        if held.len() >= MOST_RUNS {
            held.retain(|_, held| held.run.since.age() < UNUSED);
            if held.len() >= MOST_RUNS {
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
                held.insert(at.clone(), Held::new(run));
            }
        }
    }

    /// Waits until no process relies on the run's earlier state any more.
    pub(crate) async fn wait_out(&self, at: &RunLocation) {
        self.held().remove(at);
        clock::sleep(self.length).await;
    }

    /// Where to add the points of a call.
    pub(crate) fn addition(&self, at: &RunLocation, run: &LoggedRun, series: &Series, sealed: &Sealed) -> Addition {
        let mut runs = self.held();
        let held = runs.entry(at.clone()).or_insert_with(|| Held::new(run.clone()));
        let (element, names) = held.element(at, series, sealed);
        let size = element.len() + 1;
        let empty = |tail: &Digest| Item::new(rows::MetricJournal::key(&at.run, tail)).size() + CALLS.name().len() + 3;
        let own = new_tail();
        // Two of these have no room in a tail.
        let is_alone = empty(&own) + 2 * size > WRITE_UNIT;
        if !is_alone {
            if held.tail_bytes + size > WRITE_UNIT {
                held.tail = own;
                held.tail_bytes = empty(&own);
            }
            held.tail_bytes += size;
        }
        held.unpacked += size;
        let asks_for_packing = held.unpacked >= UNPACKED_BYTES.max(UNPACKED_CALLS * size).min(MOST_UNPACKED);
        if asks_for_packing {
            held.unpacked = 0;
        }
        let tail = if is_alone {
            rows::JournalCall::key(&at.run, &own)
        } else {
            rows::MetricJournal::key(&at.run, &held.tail)
        };
        Addition { tail, is_alone, element, names, asks_for_packing }
    }

    /// The row of these names was written.
    pub(crate) fn names_are_there(&self, at: &RunLocation, names: WideDigest) {
        if let Some(held) = self.held().get_mut(at) {
            held.names.insert(names, true);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<RunLocation, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn new(run: LoggedRun) -> Self {
        // Full, so that the first call begins a tail.
        Self { run, tail: Digest(0), tail_bytes: WRITE_UNIT, unpacked: 0, names: HashMap::new() }
    }

    /// The element of a call, and the row of its names if it needs one that may not be there.
    fn element(&mut self, at: &RunLocation, series: &Series, sealed: &Sealed) -> (Vec<u8>, Option<(WideDigest, Item)>) {
        let packed = pack_call(series, sealed);
        let step = if packed.len() > MANY_NAMES && sealed.is_empty() { Step::of(series) } else { None };
        let Some(step) = step else { return (packed, None) };
        if self.names.len() >= MOST_NAMES && !self.names.contains_key(&step.names) {
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
