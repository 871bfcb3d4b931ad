//! How long changes wait for the indexer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// What was changed and when, and how long it waited.
#[derive(Default)]
pub(crate) struct Lag(RefCell<State>);

#[derive(Default)]
struct State {
    /// When each run was changed since it was indexed last.
    waiting: HashMap<String, Vec<Duration>>,
    found: Waits,
}

/// How long changes waited, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// From when a change stood in the stream until a batch with it was done.
    pub seen: Vec<f64>,
    /// From when a change was answered until the run stood in the index with it.
    pub indexed: Vec<f64>,
    /// The same for changes that still wait at the end, until then.
    pub waiting: Vec<f64>,
}

impl Waits {
    /// The longest time that a change waited to be indexed, or has waited by the end.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.indexed.iter().chain(&self.waiting).copied().fold(0.0, f64::max)
    }
}

impl Lag {
    /// A call that changed a run was answered.
    pub(crate) fn changed(&self, run: &str, at: Duration) {
        self.0.borrow_mut().waiting.entry(run.to_owned()).or_default().push(at);
    }

    /// The index now has a run as it was when the indexer `began` to look at it.
    pub(crate) fn indexed(&self, run: &str, began: Duration, at: Duration) {
        let state = &mut *self.0.borrow_mut();
        let Some(changes) = state.waiting.get_mut(run) else { return };
        let since = changes.partition_point(|changed| *changed <= began);
        state.found.indexed.extend(changes.drain(..since).map(|changed| at.saturating_sub(changed).as_secs_f64()));
        if changes.is_empty() {
            state.waiting.remove(run);
        }
    }

    /// A record of the stream that had waited so long was carried over.
    pub(crate) fn seen(&self, waited: Duration) {
        self.0.borrow_mut().found.seen.push(waited.as_secs_f64());
    }

    /// Starts a new count. Changes that wait go on waiting.
    pub(crate) fn reset(&self) {
        self.0.borrow_mut().found = Waits::default();
    }

    /// What was found by `now`.
    pub(crate) fn found(&self, now: Duration) -> Waits {
        let state = self.0.borrow();
        let waiting = state.waiting.values().flatten().map(|changed| now.saturating_sub(*changed).as_secs_f64());
        Waits { waiting: waiting.collect(), ..state.found.clone() }
    }
}

/// The value that so great a part of some values does not exceed; zero of none.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let place = (part * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(place).copied().unwrap_or_default()
}
