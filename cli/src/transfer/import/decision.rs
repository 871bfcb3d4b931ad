//! Decides what happens to an entity of the source, given the document that the table has for it.

use entities::attributes::IMPORTED;
use table::Item;

/// The value of `IMPORTED` while an entity is being replaced, so that an interrupted import is not
/// mistaken for a change by a client. A change that a client makes between the interruption and the
/// next import is overwritten.
pub(super) const REPLACING: &str = "replacing";

/// The decision on an entity of the source, which determines what the import does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportDecision {
    /// The table has no document with the entity's key.
    Create,
    /// The entity was already imported from this record.
    Unchanged,
    /// The entity was imported, and its record has changed since then.
    Changed,
    /// An import was interrupted while it was replacing the entity.
    Interrupted,
    /// A client created an entity with this key.
    Taken,
}

impl ImportDecision {
    /// Decides what happens to an entity, given its document in the table and the fingerprint of
    /// its record.
    pub(crate) fn of(document: Option<&Item>, fingerprint: &str) -> Self {
        let Some(document) = document else { return Self::Create };
        match document.get(IMPORTED) {
            None => Self::Taken,
            Some(REPLACING) => Self::Interrupted,
            Some(imported) if imported == fingerprint => Self::Unchanged,
            Some(_) => Self::Changed,
        }
    }
}
