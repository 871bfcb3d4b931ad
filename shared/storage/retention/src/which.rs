//! Which of the entities that are given are removed.

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are deleted, and were so before a moment, in ms, if there is one.
    Deleted {
        /// The moment.
        before: Option<i64>,
    },
    /// All.
    All,
}

impl Which {
    /// Whether one is among them that is deleted since then, in ms; or is not.
    pub(crate) fn contains(self, since: Option<i64>) -> bool {
        match self {
            Self::All => true,
            Self::Deleted { before } => since.is_some_and(|since| before.is_none_or(|before| since <= before)),
        }
    }
}

impl Default for Which {
    fn default() -> Self {
        Self::Deleted { before: None }
    }
}
