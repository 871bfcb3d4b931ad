//! Measures how long changes wait for the indexer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// A record of changes and their waiting times.
#[derive(Default)]
pub(crate) struct IndexingLag(RefCell<State>);

#[derive(Default)]
struct State {
    /// For each run, the times of its changes since it was last indexed.
    waiting: HashMap<String, Vec<Duration>>,
    times: WaitingTimes,
}

/// Waiting times of changes, in seconds.
#[derive(Clone, Debug, Default)]
pub struct WaitingTimes {
    /// Seconds from the arrival of each change in the stream to the completion of a batch that
    /// contains it.
    pub delivered: Vec<f64>,
    /// Seconds from the response to each change until the index contains the run with that change.
    pub indexed: Vec<f64>,
    /// For changes that are still waiting at the end of the measurement: seconds from the response
    /// to the change until that end.
    pub waiting: Vec<f64>,
}

impl WaitingTimes {
    /// Returns the longest time that a change waited to be indexed, or had been waiting at the end.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.indexed.iter().chain(&self.waiting).copied().fold(0.0, f64::max)
    }
}

impl IndexingLag {
    /// Records that a call that changed a run was answered.
    pub(crate) fn changed(&self, run: &str, at: Duration) {
        self.0.borrow_mut().waiting.entry(run.to_owned()).or_default().push(at);
    }

    /// Records that the index contains the state that a run had when the indexer `began` to process
    /// it.
    pub(crate) fn indexed(&self, run: &str, began: Duration, at: Duration) {
        let state = &mut *self.0.borrow_mut();
        let Some(changes) = state.waiting.get_mut(run) else { return };
        let since = changes.partition_point(|changed| *changed <= began);
        state.times.indexed.extend(changes.drain(..since).map(|changed| at.saturating_sub(changed).as_secs_f64()));
        if changes.is_empty() {
            state.waiting.remove(run);
        }
    }

    /// Records that a stream record was processed, and how long it had waited.
    pub(crate) fn delivered(&self, waited: Duration) {
        self.0.borrow_mut().times.delivered.push(waited.as_secs_f64());
    }

    /// Starts a new measurement. Changes that are waiting keep their times.
    pub(crate) fn reset(&self) {
        self.0.borrow_mut().times = WaitingTimes::default();
    }

    /// Returns the waiting times measured up to `now`.
    pub(crate) fn waiting_times(&self, now: Duration) -> WaitingTimes {
        let state = self.0.borrow();
        let waiting = state.waiting.values().flatten().map(|changed| now.saturating_sub(*changed).as_secs_f64());
        WaitingTimes { waiting: waiting.collect(), ..state.times.clone() }
    }
}

/// Returns the quantile `part`, between 0 and 1, of the values. Returns zero if there are no
/// values.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a valid index of the list"
    )]
    let place = (part * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(place).copied().unwrap_or_default()
}
