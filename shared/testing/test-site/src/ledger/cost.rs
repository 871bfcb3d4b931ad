//! The cost of a call, and its budget.

use table::ConsumedUnits;

/// The maximum number of requests, write units and read units that a call may cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(crate) cold: [f64; 3],
    pub(crate) warm: [f64; 3],
}

/// Returns the budget of a call. Both arrays contain requests, write units and read units, as the
/// capacity page shows them: `cold` for the first call of a process, `warm` for later ones.
#[must_use]
pub const fn budget(cold: [f64; 3], warm: [f64; 3]) -> Budget {
    Budget { cold, warm }
}

/// The consumption of calls, and of the background work that they cause.
#[derive(Debug)]
pub struct CostWithBackgroundWork {
    /// Consumption of the calls themselves.
    pub own: ConsumedUnits,
    /// Consumption of the background work that the calls cause.
    pub following: ConsumedUnits,
}

/// The metered cost of a call, averaged over several calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeteredCost {
    /// Requests, write units and read units.
    pub(crate) units: [f64; 3],
    /// The part of the write units that indexes consumed.
    pub(crate) of_indexes: f64,
}

impl MeteredCost {
    /// Returns the average cost of a call, given the total consumption of `calls` equal calls.
    pub(crate) fn mean(usage: &ConsumedUnits, calls: u32) -> Self {
        Self::scaled(usage, |units| units / f64::from(calls))
    }

    /// Returns the cost for a consumption, after applying `scaled` to each value.
    pub(crate) fn scaled(usage: &ConsumedUnits, scaled: impl Fn(f64) -> f64) -> Self {
        Self {
            units: [f64::from(usage.requests), usage.write_units, usage.read_units].map(&scaled),
            of_indexes: scaled(usage.local_index_units + usage.global_index_units),
        }
    }

    pub(crate) fn is_within(&self, budget: [f64; 3]) -> bool {
        // Values are rounded to the precision of the page before they are compared.
        self.units.iter().zip(budget).all(|(units, most)| *units < most + 0.0051)
    }
}

/// Formats a figure without trailing zeros.
pub(crate) fn figure(value: f64) -> String {
    let rounded = format!("{value:.2}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}
