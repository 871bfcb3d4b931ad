//! What calls came to.

use std::collections::BTreeMap;
use std::time::Duration;

use table::Usage;

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// A job begins its run.
    Create,
    /// A job logs metrics, perhaps params and tags as well, in one call.
    Log,
    /// A job ends its run.
    End,
    /// A user looks at the latest 100 runs.
    Latest,
    /// A user looks at the 100 runs with the greatest value of a metric.
    ByMetric,
    /// A process exports the traces that it has gathered.
    Export,
    /// A user looks at the latest 100 traces.
    LatestTraces,
    /// A user looks at the latest 100 traces with a tag that one in twenty has.
    TracesByTag,
    /// A sandbox starts.
    ColdStart,
    /// Lambda hands a batch of the stream to the indexer, or the schedule calls it.
    Indexer,
}

impl Call {
    /// What it is called in a table.
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

    /// Whether it comes by API Gateway.
    #[must_use]
    pub fn is_by_http(self) -> bool {
        !matches!(self, Self::ColdStart | Self::Indexer)
    }
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// All of them, each attempt of a client.
    pub made: u32,
    /// Answered as asked.
    pub answered: u32,
    /// Answered 429.
    pub throttled: u32,
    /// Answered with another error that is worth another attempt.
    pub failed: u32,
    /// Given up by the client, after as many attempts as it makes.
    pub given_up: u32,
    /// Requests to the table, and their consumption.
    pub usage: Usage,
    /// How long they took together.
    pub time: Duration,
    /// How long the longest took.
    pub longest: Duration,
}

/// Calls by their kind.
#[derive(Clone, Debug, Default)]
pub struct Tally(pub BTreeMap<Call, Calls>);

impl Tally {
    /// Counts a call; `status` is that of its answer.
    pub(crate) fn count(&mut self, call: Call, status: u16, usage: &Usage, lasted: Duration) {
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
        calls.usage.global_index_units += usage.global_index_units;
        calls.time += lasted;
        calls.longest = calls.longest.max(lasted);
    }

    pub(crate) fn give_up(&mut self, call: Call) {
        self.0.entry(call).or_default().given_up += 1;
    }

    /// The sum of something over all calls.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&Calls) -> f64) -> f64 {
        self.0.values().map(of).sum()
    }
}
