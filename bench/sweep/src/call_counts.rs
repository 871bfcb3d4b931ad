//! Counts of calls, and their cost.

use std::collections::BTreeMap;
use std::time::Duration;

use table::ConsumedUnits;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A job creates its run.
    Create,
    /// A job logs metrics, and possibly params and tags, in one call.
    Log,
    /// A job ends its run.
    End,
    /// A user searches for the latest 100 runs.
    Latest,
    /// A user searches for the 100 runs with the highest value of a metric.
    ByMetric,
    /// A process exports the traces that it has gathered.
    Export,
    /// A user searches for the latest 100 traces.
    LatestTraces,
    /// A user searches for the latest 100 traces with a tag that one in twenty has.
    TracesByTag,
    /// A sandbox starts.
    ColdStart,
    /// Lambda delivers a batch of the stream to the indexer, or the schedule calls the indexer.
    Indexer,
}

impl CallKind {
    /// Returns the name of the call in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create a run",
            Self::Log => "log a batch",
            Self::End => "end a run",
            Self::Latest | Self::LatestTraces => "search: latest 100",
            Self::ByMetric => "search: top 100 by a metric",
            Self::Export => "export traces",
            Self::TracesByTag => "search: latest 100 by a tag",
            Self::ColdStart => "cold starts",
            Self::Indexer => "the indexer",
        }
    }

    /// Returns whether the call goes through API Gateway.
    #[must_use]
    pub fn is_by_http(self) -> bool {
        !matches!(self, Self::ColdStart | Self::Indexer)
    }
}

/// Counts, consumption and durations of the calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct CallStats {
    /// Number of calls, including each retry by a client.
    pub made: u32,
    /// Number of successful calls.
    pub answered: u32,
    /// Number of calls that were answered with status 429.
    pub throttled: u32,
    /// Number of calls that the gateway refused with status 429. `throttled` includes them.
    pub refused: u32,
    /// Number of calls that were answered with another error that clients retry.
    pub failed: u32,
    /// Number of calls that clients gave up after the last attempt.
    pub given_up: u32,
    /// Requests to the table, and their consumption.
    pub usage: ConsumedUnits,
    /// Total duration of the calls.
    pub time: Duration,
    /// Duration of the longest call.
    pub longest: Duration,
    /// Processor time that this machine spent on the calls.
    pub computed: Duration,
    /// Processor time that the model's rule predicts for the calls on a whole core.
    pub by_rule: Duration,
}

/// Statistics of the calls, by kind.
#[derive(Clone, Debug, Default)]
pub struct CallCounts(pub BTreeMap<CallKind, CallStats>);

impl CallCounts {
    /// Counts a call, given the status of its response.
    pub(crate) fn count(&mut self, call: CallKind, status: u16, usage: &ConsumedUnits, lasted: Duration) {
        let calls = self.0.entry(call).or_default();
        calls.made += 1;
        match status {
            200 => calls.answered += 1,
            429 => calls.throttled += 1,
            _ => calls.failed += 1,
        }
        calls.usage.requests += usage.requests;
        calls.usage.read_units += usage.read_units;
        calls.usage.write_units += usage.write_units;
        calls.usage.local_index_units += usage.local_index_units;
        calls.usage.global_index_units += usage.global_index_units;
        calls.time += lasted;
        calls.longest = calls.longest.max(lasted);
    }

    /// Counts a call that the gateway refused.
    pub(crate) fn count_refused(&mut self, call: CallKind) {
        self.count(call, 429, &ConsumedUnits::default(), Duration::ZERO);
        self.0.entry(call).or_default().refused += 1;
    }

    /// Adds the processor time of a call: the time measured on this machine, and the time that the
    /// model's rule predicts.
    pub(crate) fn add_compute(&mut self, call: CallKind, computed: Duration, by_rule: Duration) {
        let calls = self.0.entry(call).or_default();
        calls.computed += computed;
        calls.by_rule += by_rule;
    }

    pub(crate) fn count_given_up(&mut self, call: CallKind) {
        self.0.entry(call).or_default().given_up += 1;
    }

    /// Returns the sum of a value over all kinds of calls.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&CallStats) -> f64) -> f64 {
        self.0.values().map(of).sum()
    }
}
