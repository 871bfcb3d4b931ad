//! What happens to an entity of the source, given the document that exists here.

use entities::attributes::IMPORTED;
use table::Item;

/// What happens to an entity of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportDecision {
    /// There is no document with the entity's key.
    Create,
    /// The entity was imported from this record already.
    Unchanged,
    /// The entity was imported, and its record has changed since then.
    Changed,
    /// A client created an entity with this key.
    Taken,
}

impl ImportDecision {
    /// Decides about an entity, given its document here and the fingerprint of its record.
    pub(crate) fn of(document: Option<&Item>, fingerprint: &str) -> Self {
        let Some(document) = document else { return Self::Create };
        match document.get(IMPORTED) {
            None => Self::Taken,
            Some(imported) if imported == fingerprint => Self::Unchanged,
            Some(_) => Self::Changed,
        }
    }
}
