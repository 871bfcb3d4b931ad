//! The cost of a call, and its budget.

use table::Usage;

/// Requests, write units and read units that a call may cost at most.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(crate) cold: [f64; 3],
    pub(crate) warm: [f64; 3],
}

/// The budget of a call: requests, write units and read units, each as the page shows them, cold and warm.
#[must_use]
pub const fn budget(cold: [f64; 3], warm: [f64; 3]) -> Budget {
    Budget { cold, warm }
}

/// The consumption of calls, and of the work that follows from them.
#[derive(Debug)]
pub struct AllIn {
    /// The calls.
    pub own: Usage,
    /// The consumption of the work that followed.
    pub following: Usage,
}

/// The metered cost of a call in the mean of some calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Requests, write units, read units.
    pub(crate) units: [f64; 3],
    /// The part of the write units that went to indexes.
    pub(crate) of_indexes: f64,
}

impl Cost {
    /// The mean of `calls` equal calls that consumed this together.
    pub(crate) fn mean(usage: &Usage, calls: u32) -> Self {
        Self::scaled(usage, |units| units / f64::from(calls))
    }

    /// Consumption, with each figure scaled.
    pub(crate) fn scaled(usage: &Usage, scaled: impl Fn(f64) -> f64) -> Self {
        Self {
            units: [f64::from(usage.requests), usage.write_units, usage.read_units].map(&scaled),
            of_indexes: scaled(usage.local_index_units + usage.global_index_units),
        }
    }

    pub(crate) fn is_within(&self, budget: [f64; 3]) -> bool {
        // As exact as the page is.
        self.units.iter().zip(budget).all(|(units, most)| *units < most + 0.0051)
    }
}

/// A figure without zeros at its end.
pub(crate) fn figure(value: f64) -> String {
    let rounded = format!("{value:.2}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}
