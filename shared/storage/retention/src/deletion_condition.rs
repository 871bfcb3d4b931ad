//! Selection of the entities that are deleted among those that are given.

/// The condition for deleting an entity permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionCondition {
    /// The entity is deleted, and was before a given time in ms, if there is one.
    Deleted {
        /// Latest time of the deletion, in ms.
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
