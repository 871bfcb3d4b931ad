//! Decides when a run is processed, that is, packed, and indexed unless it keeps its mark: immediately if
//! it is new or has ended, and while it is being logged to, once per interval, or per three intervals
//! if its journal is small.
//!
//! A run that changes constantly would be processed with every batch of the stream, and each pass
//! costs more than the change itself. Therefore a run is processed only if it has ended, has never
//! been processed, or was last processed at least one interval ago. The run's document contains the
//! time when the run is due ([`IndexingState::due`]). Until then the run stays marked, and searches
//! read it from its documents.
//!
//! The first change after the due time causes the run to be indexed. There may be no such change,
//! for example because the job that logs to the run was killed. A row therefore records when the
//! run has to be checked: [`Postponed`](rows::Postponed). These rows are read by
//! [`ticks`](crate::scheduled_ticks).

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::{CLOSING_MS, IndexingState, RUN_ENTITY_TYPE, RunLocation, now_ms};
use key_schema::{Ascending, Key, Shard, rows};
use mlflow_api::RunId;

/// Default minimum interval between two passes over a run that is being logged to.
pub const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);

/// Number of intervals after which a run is packed again whose points are few and which keeps its
/// mark. Fewer passes cost less, and write fewer and longer segments.
const LONG_INTERVALS: i64 = 3;
/// Maximum delay, in ms, that results from [`LONG_INTERVALS`].
const MAX_LONG_DELAY_MS: i64 = 180_000;
/// Size in bytes of a journal whose run is packed less often: the points since the previous pass are few,
/// but clients log continuously. Ten metrics per second take 21 KB in three minutes. A request for a run
/// reads its whole journal, so the next pass follows after one interval if a journal is larger. If
/// clients log rarely, a pass that soon finds the journal empty lets the mark be removed.
const SMALL_JOURNAL_BYTES: RangeInclusive<usize> = (1 << 10)..=(24 << 10);
/// Size of such a journal in bytes if calls began to rely on the mark a few seconds ago.
const SMALL_NEW_JOURNAL_BYTES: RangeInclusive<usize> = 256..=(2 << 10);

/// Maximum number of runs whose rows are cached, which takes a few MB. If a run is evicted, its row
/// is written once more.
const MAX_CACHED_RUNS: usize = 50_000;

/// The interval of indexing, and the runs that were postponed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct IndexingSchedule {
    pub(crate) interval: Duration,
    pub(crate) clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Runs that have a row, and the time until which the row remains.
    postponed: Arc<Mutex<HashMap<RunLocation, i64>>>,
}

impl fmt::Debug for IndexingSchedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Schedule").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl Default for IndexingSchedule {
    fn default() -> Self {
        Self { interval: DEFAULT_INTERVAL, clock: Arc::new(now_ms), postponed: Arc::default() }
    }
}

/// The runs of a batch, grouped by when they have to be indexed, as far as the batch's records
/// show.
#[derive(Debug, Default)]
pub(crate) struct SortedRuns {
    /// Runs to be read now. They are new, have ended or are due, or this process has no record of
    /// their state.
    pub(crate) now: Vec<RunLocation>,
    /// Runs that are not due before the given time. They may not have a row yet.
    pub(crate) later: Vec<(RunLocation, i64)>,
}

/// When a run has to be indexed, according to its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Urgency {
    /// Whether to index immediately, because the run has ended or because indexing was requested.
    pub(crate) now: bool,
    /// Time in ms before which the run does not have to be indexed.
    pub(crate) due: Option<i64>,
}

impl Urgency {
    /// Returns how soon a run in this indexing state has to be indexed.
    pub(crate) fn of(run: &IndexingState) -> Self {
        Self { now: run.is_urgent(), due: run.due }
    }

    /// Combines the urgencies of several records.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { now: self.now || other.now, due: self.due.max(other.due) }
    }
}

impl IndexingSchedule {
    /// Returns the current time in ms.
    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    fn interval_ms(&self) -> i64 {
        i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the delay, in ms, after which a due row is processed, to allow for clock skew
    /// between two processes.
    pub(crate) fn grace_ms(&self) -> i64 {
        self.interval_ms() / 6
    }

    /// Returns when a run that is indexed now is due again, or `None` if it is indexed on every
    /// change. `journal` is the size of the run's journal in bytes, if the run keeps its mark because
    /// calls rely on it.
    pub(crate) fn next(&self, run: &IndexingState, journal: Option<usize>) -> Option<i64> {
        // When calls begin to rely on the mark, the run has no due time.
        let is_small = journal.is_some_and(|bytes| match run.due {
            None => SMALL_NEW_JOURNAL_BYTES.contains(&bytes),
            Some(_) => SMALL_JOURNAL_BYTES.contains(&bytes),
        });
        let (interval, long) = (self.interval_ms(), self.interval_ms().saturating_mul(LONG_INTERVALS));
        let delay = if is_small { long.min(MAX_LONG_DELAY_MS).max(interval) } else { interval };
        (!run.has_ended && !self.interval.is_zero()).then(|| self.now().saturating_add(delay))
    }

    /// Returns the time at which a run is due, or `None` if the run has to be indexed now.
    pub(crate) fn not_before(&self, run: &IndexingState) -> Option<i64> {
        if run.is_urgent() || !run.is_marked || self.interval.is_zero() {
            return None;
        }
        run.due.filter(|due| *due > self.now())
    }

    /// Returns how long before its due time, in ms, a tick processes a run. A run with a mark that
    /// calls rely on is processed only by ticks. If ticks did not process runs a little early, such
    /// a run would wait for one more tick.
    pub(crate) fn early_ms(&self, run: &IndexingState) -> i64 {
        if run.is_relied_on() { self.interval_ms() / 2 } else { 0 }
    }

    /// Returns the earliest time, in ms, at which a mark may be removed if its closing is announced
    /// now.
    pub(crate) fn closing(&self) -> i64 {
        self.now().saturating_add(CLOSING_MS + self.grace_ms())
    }

    /// Sorts the runs of a batch by the urgency of their records. Runs that already have a row,
    /// because they were postponed, are left out.
    pub(crate) fn sort<'a>(&self, changed: impl Iterator<Item = (&'a RunLocation, Urgency)>) -> SortedRuns {
        let now = self.now();
        let waiting = self.postponed();
        let mut sorted = SortedRuns::default();
        for (at, urgency) in changed {
            let is_waiting = waiting.get(at).is_some_and(|until| *until > now);
            match urgency {
                Urgency { now: false, .. } if is_waiting => {}
                Urgency { now: false, due: Some(due) } if due > now && !self.interval.is_zero() => {
                    sorted.later.push((at.clone(), due));
                }
                _ => sorted.now.push(at.clone()),
            }
        }
        sorted
    }

    /// Records that these runs now have rows.
    pub(crate) fn remember(&self, rows: &[(RunLocation, i64)]) {
        let now = self.now();
        let mut waiting = self.postponed();
        if waiting.len() + rows.len() > MAX_CACHED_RUNS {
            waiting.retain(|_, until| *until > now);
        }
        if waiting.len() + rows.len() > MAX_CACHED_RUNS {
            waiting.clear();
        }
        waiting.extend(rows.iter().cloned());
    }

    fn postponed(&self) -> MutexGuard<'_, HashMap<RunLocation, i64>> {
        self.postponed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of the row that schedules a check of a run. `due` is the time of the check in
/// ms.
pub(crate) fn row_of(at: &RunLocation, due: i64) -> Key {
    let run = at.run.as_str();
    rows::Postponed::key(&Shard::of(run), &Ascending(due), &RUN_ENTITY_TYPE.into(), &at.experiment, &run.into())
}

/// Returns the run of a row that schedules a check, or `None` if the row is about another kind of
/// entity.
pub(crate) fn run_of_row(key: &Key) -> Option<RunLocation> {
    let row = rows::Postponed::parse(key).filter(|row| row.entity_type.0 == RUN_ENTITY_TYPE)?;
    Some(RunLocation { experiment: row.experiment, run: RunId::parse(&row.entity.0)? })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use mlflow_api::ExperimentId;

    use super::*;

    fn at(run: &str) -> RunLocation {
        RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse(run).unwrap() }
    }

    fn clock() -> (IndexingSchedule, Arc<AtomicI64>) {
        let time = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&time);
        (
            IndexingSchedule { clock: Arc::new(move || clock.load(Ordering::Relaxed)), ..IndexingSchedule::default() },
            time,
        )
    }

    fn names(runs: &[RunLocation]) -> Vec<&str> {
        runs.iter().map(|at| at.run.as_str()).collect()
    }

    #[test]
    fn a_run_waits_until_it_is_due_or_ends() {
        let (schedule, time) = clock();
        let runs = ["new", "due", "later", "ended"].map(at);
        let says = [
            Urgency::default(),
            Urgency { now: false, due: Some(10) },
            Urgency { now: false, due: Some(90) },
            Urgency { now: true, due: Some(90) },
        ];
        time.store(50, Ordering::Relaxed);
        let sorted = schedule.sort(runs.iter().zip(says));
        assert_eq!(names(&sorted.now), ["new", "due", "ended"]);
        assert_eq!(sorted.later, [(at("later"), 90)]);

        schedule.remember(&sorted.later);
        let sorted = schedule.sort(runs.iter().zip(says));
        assert!(sorted.later.is_empty(), "it has a row");
        // A record without a due time does not change what the schedule has recorded about the run.
        let sorted = schedule.sort([(&runs[2], Urgency::default())].into_iter());
        assert!(sorted.later.is_empty() && sorted.now.is_empty());

        time.store(90, Ordering::Relaxed);
        assert_eq!(names(&schedule.sort(runs.iter().zip(says)).now), ["new", "due", "later", "ended"]);
    }

    #[test]
    fn a_small_journal_is_packed_less_often() {
        let (schedule, _) = clock();
        let key = at("a").key();
        let state = |numbers: &[&'static str]| {
            numbers.iter().fold(table::Item::new(key.clone()), |item, name| item.with(*name, table::number(5)))
        };
        let (new, known) = (state(&[]), state(&[entities::attributes::DUE.name()]));
        let next = |item, journal| schedule.next(&IndexingState::of(item), journal);
        let [one, three] = [1, 3].map(|intervals| Some(intervals * schedule.interval_ms()));
        let (least, most) = (*SMALL_JOURNAL_BYTES.start(), *SMALL_JOURNAL_BYTES.end());
        assert_eq!((next(&known, Some(least)), next(&known, Some(most))), (three, three));
        assert_eq!((next(&known, Some(least - 1)), next(&known, Some(most + 1))), (one, one));
        assert_eq!((next(&known, None), next(&new, None)), (one, one));
        let (least, most) = (*SMALL_NEW_JOURNAL_BYTES.start(), *SMALL_NEW_JOURNAL_BYTES.end());
        assert_eq!((next(&new, Some(least)), next(&new, Some(most))), (three, three));
        assert_eq!((next(&new, Some(least - 1)), next(&new, Some(most + 1))), (one, one));
        let slow = IndexingSchedule { interval: Duration::from_mins(15), ..schedule };
        assert_eq!(slow.next(&IndexingState::of(&known), Some(most)), Some(900_000));
    }

    #[test]
    fn no_more_is_remembered_than_has_room() {
        let (schedule, time) = clock();
        for number in 0..10 {
            let rows: Vec<_> = (0..MAX_CACHED_RUNS / 4).map(|run| (at(&format!("{number}-{run}")), number)).collect();
            time.store(number, Ordering::Relaxed);
            schedule.remember(&rows);
            assert!(schedule.postponed().len() <= MAX_CACHED_RUNS);
        }
        assert!(!schedule.postponed().is_empty());
    }

    #[test]
    fn a_row_leads_to_its_run() {
        assert_eq!(run_of_row(&row_of(&at("run"), 7)), Some(at("run")));
        let other =
            rows::Postponed::key(&Shard::of("t"), &Ascending(7), &"trace".into(), &ExperimentId::DEFAULT, &"t".into());
        assert_eq!(run_of_row(&other), None);
    }
}
