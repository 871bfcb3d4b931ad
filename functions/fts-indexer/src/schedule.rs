//! When a run is indexed: at once where it is new or has ended, and once per interval while it is
//! being logged to.
//!
//! A run that changes all the time would be indexed with every batch of the stream, and each time
//! costs more than the change itself. So it is indexed when it has ended, when it never was, or
//! when the last time is an interval ago. Its document holds that time ([`IndexingState::due`]). In
//! between it stays marked, and searches read it from its documents.
//!
//! The next change after that time has it indexed. There may be none, for example because its job
//! was killed. So a row says when the run has to be looked at: [`Postponed`](rows::Postponed).
//! [`ticks`](crate::ticks) read these rows.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::{CLOSING_TIME, IndexingState, RUN, RunLocation, now_ms};
use key_schema::{Ascending, Key, Shard, rows};
use mlflow_api::RunId;

/// How often a run that is being logged to is indexed at most, unless somebody says otherwise.
pub const INTERVAL: Duration = Duration::from_mins(1);

/// Entities that are remembered to have a row, at most: some MB. Where one is forgotten, its row is written once more.
const MOST_REMEMBERED: usize = 50_000;

/// How often runs are indexed, and which were put off. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) interval: Duration,
    pub(crate) clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Runs that have a row, and until when that stays.
    waiting: Arc<Mutex<HashMap<RunLocation, i64>>>,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Schedule").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self { interval: INTERVAL, clock: Arc::new(now_ms), waiting: Arc::default() }
    }
}

/// When the runs of a batch are to be indexed, as far as its records say.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// To be read: they are new, have ended or are due, or nobody here knows.
    pub(crate) now: Vec<RunLocation>,
    /// Not before the time; there may be no row yet that says so.
    pub(crate) later: Vec<(RunLocation, i64)>,
}

/// When a run is to be indexed, by its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Urgency {
    /// At once, because it has ended, or somebody asks for it.
    pub(crate) now: bool,
    /// Not before this time, in ms.
    pub(crate) due: Option<i64>,
}

impl Urgency {
    /// The urgency of a run in this state.
    pub(crate) fn of(run: &IndexingState) -> Self {
        Self { now: run.is_urgent(), due: run.due }
    }

    /// The urgency of several records together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { now: self.now || other.now, due: self.due.max(other.due) }
    }
}

impl Schedule {
    /// Now, in ms.
    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    fn interval_ms(&self) -> i64 {
        i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX)
    }

    /// How much later than due a row is looked at: clocks of two processes may differ by so much.
    pub(crate) fn grace_ms(&self) -> i64 {
        self.interval_ms() / 6
    }

    /// When a run that is indexed now is due again; `None` where every change has it indexed.
    pub(crate) fn next(&self, run: &IndexingState) -> Option<i64> {
        (!run.has_ended && !self.interval.is_zero()).then(|| self.now().saturating_add(self.interval_ms()))
    }

    /// When a run is due that need not be indexed now.
    pub(crate) fn not_before(&self, run: &IndexingState) -> Option<i64> {
        if run.is_urgent() || !run.is_marked || self.interval.is_zero() {
            return None;
        }
        run.due.filter(|due| *due > self.now())
    }

    /// How long before it is due a run is looked at by a tick. One whose mark is relied on is looked at by ticks alone, and would miss the
    /// next one if it had to be due.
    pub(crate) fn early_ms(&self, run: &IndexingState) -> i64 {
        if run.is_relied_on() { self.interval_ms() / 2 } else { 0 }
    }

    /// The time, in ms, from which a mark may be removed if it starts closing now.
    pub(crate) fn closing(&self) -> i64 {
        self.now().saturating_add(CLOSING_TIME + self.grace_ms())
    }

    /// Sorts the runs of a batch by the urgency of their records. Runs that wait already, and have
    /// a row, are left out.
    pub(crate) fn sort<'a>(&self, changed: impl Iterator<Item = (&'a RunLocation, Urgency)>) -> Sorted {
        let now = self.now();
        let waiting = self.waiting();
        let mut sorted = Sorted::default();
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

    /// Says that these runs have rows now.
    pub(crate) fn remember(&self, rows: &[(RunLocation, i64)]) {
        let now = self.now();
        let mut waiting = self.waiting();
        if waiting.len() + rows.len() > MOST_REMEMBERED {
            waiting.retain(|_, until| *until > now);
        }
        if waiting.len() + rows.len() > MOST_REMEMBERED {
            waiting.clear();
        }
        waiting.extend(rows.iter().cloned());
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RunLocation, i64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row that says when somebody has to look at a run.
pub(crate) fn row_of(at: &RunLocation, due: i64) -> Key {
    let run = at.run.as_str();
    rows::Postponed::key(&Shard::of(run), &Ascending(due), &RUN.into(), &at.experiment, &run.into())
}

/// The run of such a row; `None` if it is about something else.
pub(crate) fn run_of_row(key: &Key) -> Option<RunLocation> {
    let row = rows::Postponed::parse(key).filter(|row| row.entity_type.0 == RUN)?;
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

    fn clock() -> (Schedule, Arc<AtomicI64>) {
        let time = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&time);
        (Schedule { clock: Arc::new(move || clock.load(Ordering::Relaxed)), ..Schedule::default() }, time)
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
        // A record of a document that was not there when the run was indexed says nothing.
        let sorted = schedule.sort([(&runs[2], Urgency::default())].into_iter());
        assert!(sorted.later.is_empty() && sorted.now.is_empty());

        time.store(90, Ordering::Relaxed);
        assert_eq!(names(&schedule.sort(runs.iter().zip(says)).now), ["new", "due", "later", "ended"]);
    }

    #[test]
    fn no_more_is_remembered_than_has_room() {
        let (schedule, time) = clock();
        for number in 0..10 {
            let rows: Vec<_> = (0..MOST_REMEMBERED / 4).map(|run| (at(&format!("{number}-{run}")), number)).collect();
            time.store(number, Ordering::Relaxed);
            schedule.remember(&rows);
            assert!(schedule.waiting().len() <= MOST_REMEMBERED);
        }
        assert!(!schedule.waiting().is_empty());
    }

    #[test]
    fn a_row_leads_to_its_run() {
        assert_eq!(run_of_row(&row_of(&at("run"), 7)), Some(at("run")));
        let other =
            rows::Postponed::key(&Shard::of("t"), &Ascending(7), &"trace".into(), &ExperimentId::DEFAULT, &"t".into());
        assert_eq!(run_of_row(&other), None);
    }
}
