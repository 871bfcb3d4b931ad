//! Quantities that have a daily quota per workspace.

/// A day in ms.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A quantity that is counted per workspace and may have a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaKind {
    /// Runs that were created.
    Runs,
    /// Traces that were started.
    Traces,
    /// Bytes of spans that were received.
    Bytes,
}

impl QuotaKind {
    /// All quantities.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Traces, Self::Bytes];

    /// Returns the name that attributes and commands use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Traces => "traces",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the quantity with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counted| counted.name() == name)
    }
}

/// Returns the number of the UTC day, counted from 1970, for a time in ms.
#[must_use]
pub const fn day_of(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}
