//! How long traces are kept: the settings of an experiment or the server, the hidden traces, and
//! the state after a removal.

use clock::now_ms;

use super::operation::Op;
use super::state::State;
use super::traces::{DAY, MIDNIGHT, Trace};

const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;

/// From when on traces are kept, at the beginning of a sequence of steps; nothing for all. Each is hours away from where any trace begins: time
/// passes, and the traces that are kept stay the same.
const KEPT_SINCE: [Option<i64>; 4] =
    [None, Some(MIDNIGHT - DAY + HOUR), Some(MIDNIGHT + HOUR), Some(MIDNIGHT + DAY + HOUR)];
/// No sequence lasts longer than this.
const LONGEST: i64 = 22 * HOUR;

/// What says that traces are kept from one of these times on.
pub(super) fn text(which: u8) -> String {
    let since = KEPT_SINCE[usize::from(which) % KEPT_SINCE.len()];
    since.map_or_else(|| "off".to_owned(), |since| format!("{}m", (now_ms() - since) / MINUTE))
}

/// Which of these times somebody said some time ago.
pub(super) fn which(text: &str) -> u8 {
    let since = text.strip_suffix('m').map(|minutes| now_ms() - minutes.parse::<i64>().unwrap() * MINUTE);
    let is_it = |known: &Option<i64>| match (known, since) {
        (Some(known), Some(since)) => (*known..known + LONGEST).contains(&since),
        (known, since) => *known == since,
    };
    u8::try_from(KEPT_SINCE.iter().position(is_it).unwrap()).unwrap()
}

impl State {
    /// From when on the traces of an experiment are kept: its tag counts, and else what the server says.
    fn kept_since(&self, experiment: u8) -> Option<i64> {
        let own = self.experiments.get(&experiment).and_then(|experiment| experiment.retention);
        KEPT_SINCE[usize::from(own.or(self.policy)?)]
    }

    /// Whether clients are shown a trace.
    pub(super) fn is_kept(&self, trace: &Trace) -> bool {
        self.kept_since(trace.experiment).is_none_or(|since| trace.time >= since)
    }

    /// Whether there is a trace that clients are shown.
    pub(super) fn shows(&self, trace: u8) -> bool {
        self.traces.get(&trace).is_some_and(|trace| self.is_kept(trace))
    }

    /// Sets or deletes the tag of an experiment; `None` where that is refused.
    pub(super) fn keep_traces(&mut self, op: Op, which: Option<u8>) -> Option<()> {
        let experiment = self.experiments.get_mut(&op.of).filter(|experiment| !experiment.is_deleted)?;
        if which.is_none() {
            experiment.retention?;
        }
        experiment.retention = which;
        Some(())
    }

    /// What is left when the traces are removed that are kept no longer: those of days that are over.
    pub(super) fn expired(mut self) -> Self {
        let all = self.clone();
        let day_is_kept = |trace: &Trace| {
            all.kept_since(trace.experiment).is_none_or(|since| trace.time.div_euclid(DAY) >= since.div_euclid(DAY))
        };
        self.traces.retain(|_, trace| day_is_kept(trace));
        self
    }
}
