//! Retention of traces in the model: the settings of experiments and the server, the traces that
//! are hidden, and the state after a removal.

use runtime::clock::now_ms;

use super::operation::Op;
use super::state::State;
use super::traces::{DAY, MIDNIGHT, Trace};

const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;

/// Start times from which traces are kept, as of the start of a sequence of steps; `None` keeps all
/// traces. Each is hours away from the start of any trace, so that the set of kept traces stays the
/// same while time passes.
const KEPT_SINCE: [Option<i64>; 4] =
    [None, Some(MIDNIGHT - DAY + HOUR), Some(MIDNIGHT + HOUR), Some(MIDNIGHT + DAY + HOUR)];
/// Upper bound of the duration of a sequence.
const LONGEST: i64 = 22 * HOUR;

/// Returns the setting that, as of now, keeps traces from the time with this index in
/// [`KEPT_SINCE`] on.
pub(super) fn text(which: u8) -> String {
    let since = KEPT_SINCE[usize::from(which) % KEPT_SINCE.len()];
    since.map_or_else(|| "off".to_owned(), |since| format!("{}m", (now_ms() - since) / MINUTE))
}

/// Returns the index in [`KEPT_SINCE`] of the time from which a setting keeps traces. The setting
/// may have been written earlier.
pub(super) fn which(text: &str) -> u8 {
    let since = text.strip_suffix('m').map(|minutes| now_ms() - minutes.parse::<i64>().unwrap() * MINUTE);
    let is_it = |known: &Option<i64>| match (known, since) {
        (Some(known), Some(since)) => (*known..known + LONGEST).contains(&since),
        (known, since) => *known == since,
    };
    u8::try_from(KEPT_SINCE.iter().position(is_it).unwrap()).unwrap()
}

impl State {
    /// Returns the time from which an experiment's traces are kept. Its tag has precedence over the
    /// server's setting.
    fn kept_since(&self, experiment: u8) -> Option<i64> {
        let own = self.experiments.get(&experiment).and_then(|experiment| experiment.retention);
        KEPT_SINCE[usize::from(own.or(self.policy)?)]
    }

    /// Returns whether a trace is within its retention, and therefore visible to clients.
    pub(super) fn is_kept(&self, trace: &Trace) -> bool {
        self.kept_since(trace.experiment).is_none_or(|since| trace.time >= since)
    }

    /// Returns whether a trace exists and is visible to clients.
    pub(super) fn shows(&self, trace: u8) -> bool {
        self.traces.get(&trace).is_some_and(|trace| self.is_kept(trace))
    }

    /// Sets or deletes the tag of an experiment. Returns `None` if the request is refused.
    pub(super) fn keep_traces(&mut self, op: Op, which: Option<u8>) -> Option<()> {
        let experiment = self.experiments.get_mut(&op.of).filter(|experiment| !experiment.is_deleted)?;
        if which.is_none() {
            experiment.retention?;
        }
        experiment.retention = which;
        Some(())
    }

    /// Returns the state after expired traces were removed. Removal is by whole days.
    pub(super) fn expired(mut self) -> Self {
        let all = self.clone();
        let day_is_kept = |trace: &Trace| {
            all.kept_since(trace.experiment).is_none_or(|since| trace.time.div_euclid(DAY) >= since.div_euclid(DAY))
        };
        self.traces.retain(|_, trace| day_is_kept(trace));
        self
    }
}
