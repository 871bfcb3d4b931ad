//! Ensures that only one indexer at a time works on a run.
//!
//! The stream has one consumer, but there is no guarantee that the previous one has stopped. A call
//! that timed out may have requests in flight, or an operator may start a second consumer. Entries
//! are written without conditions, because conditions would double the price of a write. A delayed
//! deletion could therefore remove an entry that the other indexer has written, and searches would
//! miss the run.
//!
//! The run's copy, however, is written with a condition, and before the entries. The copy contains
//! the name of the indexing, which starts with the time. If an indexer finds a copy that another
//! indexer has written recently, and the other's indexing may not have finished, it postpones the
//! run. The run keeps its mark in the meantime. The check takes no additional request.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entities::RunLocation;
use table::{Failure, Result};

/// How long, in ms, an indexer has exclusive access to a run after it wrote the run's copy.
const OWNERSHIP_MS: i64 = 240_000;
/// Time after planning after which no further portion of entries is written. It is at least as long
/// as the function's timeout.
const MAX_WRITE_DELAY: Duration = Duration::from_mins(2);
/// Maximum duration, in ms, of writing one portion of entries. Each request is retried for 20
/// seconds.
const MAX_BATCH_MS: i64 = 30_000;
/// Maximum clock skew between two processes, in ms.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// Number of hexadecimal digits that represent the time in the name of an indexing.
const TIME_DIGITS: usize = 11;
/// Maximum number of runs whose indexing is cached. If a run is evicted, this process postpones it
/// like a run of another indexer.
const MAX_CACHED_RUNS: usize = 10_000;

const _: () = assert!(
    OWNERSHIP_MS >= MAX_WRITE_DELAY.as_secs().cast_signed() * 1_000 + MAX_BATCH_MS + MAX_CLOCK_SKEW_MS,
    "entries may be written after the turn"
);

/// The indexings that this process has begun. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunOwnership {
    own: Arc<Mutex<HashMap<RunLocation, String>>>,
    /// Whether no other process indexes the same table.
    pub(crate) is_alone: bool,
}

impl RunOwnership {
    /// Creates a name for an indexing that begins now, in ms.
    pub(crate) fn name(now: i64) -> String {
        format!("{:0TIME_DIGITS$x}{:05x}", now.clamp(0, (1 << (4 * TIME_DIGITS)) - 1), rand::random_range(0..1 << 20))
    }

    /// Records the indexing of a run before its copy is written.
    pub(crate) fn begin(&self, at: &RunLocation, name: &str) {
        let mut own = self.own();
        if own.len() >= MAX_CACHED_RUNS {
            own.clear();
        }
        own.insert(at.clone(), name.to_owned());
    }

    /// Removes the record of an indexing that has been concluded.
    pub(crate) fn end(&self, at: &RunLocation) {
        self.own().remove(at);
    }

    /// Returns the time until which another indexer has exclusive access to a run, given the name
    /// of an indexing that may not have finished. Returns `None` if no other indexer has it.
    pub(crate) fn owned_by_other_until(&self, at: &RunLocation, name: &str, now: i64) -> Option<i64> {
        if self.is_alone || self.own().get(at).is_some_and(|own| own == name) {
            return None;
        }
        let began = i64::from_str_radix(name.get(..TIME_DIGITS)?, 16).ok()?;
        valid_start_times(now).contains(&began).then_some(began + OWNERSHIP_MS)
    }

    fn own(&self) -> MutexGuard<'_, HashMap<RunLocation, String>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the range of start times of indexings that still have exclusive access to their runs.
fn valid_start_times(now: i64) -> Range<i64> {
    now.saturating_sub(OWNERSHIP_MS)..now.saturating_add(MAX_CLOCK_SKEW_MS)
}

/// Checks whether another portion of entries may still be written. `age` is the time since the runs
/// were planned.
///
/// # Errors
/// Returns [`Failure::Unavailable`] if it is too late, so that the runs are delivered again.
pub(crate) fn check(age: Duration) -> Result<()> {
    if age > MAX_WRITE_DELAY {
        return Err(Failure::Unavailable("indexing takes longer than its turn".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mlflow_api::{ExperimentId, RunId};

    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn a_run_belongs_to_the_indexer_that_wrote_its_copy() {
        let at = RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse("a").unwrap() };
        let (turns, name) = (RunOwnership::default(), RunOwnership::name(NOW));
        assert_eq!(name.len(), 16);
        let until = |now| turns.owned_by_other_until(&at, &name, now);
        assert_eq!(until(NOW), Some(NOW + OWNERSHIP_MS));
        assert_eq!(until(NOW + OWNERSHIP_MS), Some(NOW + OWNERSHIP_MS));
        assert_eq!(until(NOW + OWNERSHIP_MS + 1), None);
        assert_eq!(
            (until(NOW - MAX_CLOCK_SKEW_MS + 1), until(NOW - MAX_CLOCK_SKEW_MS)),
            (Some(NOW + OWNERSHIP_MS), None)
        );
        turns.begin(&at, &name);
        assert_eq!(until(NOW), None, "its own");
        turns.end(&at);
        assert!(until(NOW).is_some());
        let alone = RunOwnership { is_alone: true, ..RunOwnership::default() };
        assert_eq!(alone.owned_by_other_until(&at, &name, NOW), None);
        for other in ["", "0", "zzzzzzzzzzzzzzzz", "ä"] {
            assert_eq!(turns.owned_by_other_until(&at, other, NOW), None, "{other}");
        }
    }

    #[test]
    fn entries_are_written_early_in_a_turn() {
        assert!(check(MAX_WRITE_DELAY).is_ok());
        assert!(matches!(check(MAX_WRITE_DELAY + Duration::from_millis(1)), Err(Failure::Unavailable(_))));
    }
}
