//! The condition that decides whether an entity is permanently deleted.

/// The condition for deleting an entity permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionCondition {
    /// The entity is deleted. If `before` is set, it was deleted before that time.
    Deleted {
        /// Time, in ms, before which the entity must have been deleted.
        before: Option<i64>,
    },
    /// Always met.
    All,
}

impl DeletionCondition {
    /// Checks whether the condition is met by an entity that has been deleted since `since`, in ms.
    /// `None` stands for an entity that is not deleted.
    pub(crate) fn contains(self, since: Option<i64>) -> bool {
        match self {
            Self::All => true,
            Self::Deleted { before } => since.is_some_and(|since| before.is_none_or(|before| since <= before)),
        }
    }
}

impl Default for DeletionCondition {
    fn default() -> Self {
        Self::Deleted { before: None }
    }
}
