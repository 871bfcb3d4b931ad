//! What happens to an entity of the source, given the document that exists here.

use entities::attributes::IMPORTED;
use table::Item;

/// The value of `IMPORTED` while an entity is being replaced, so that an interrupted import is not
/// mistaken for a change by a client. A change that a client makes between the interruption and the
/// next import is overwritten.
pub(super) const REPLACING: &str = "replacing";

/// What happens to an entity of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportDecision {
    /// There is no document with the entity's key.
    Create,
    /// The entity was imported from this record already.
    Unchanged,
    /// The entity was imported, and its record has changed since then.
    Changed,
    /// An import was interrupted while it replaced the entity.
    Interrupted,
    /// A client created an entity with this key.
    Taken,
}

impl ImportDecision {
    /// Decides about an entity, given its document here and the fingerprint of its record.
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
