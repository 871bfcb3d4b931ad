//! What entities are indexed by.

use std::fmt::{Debug, Display};

use crate::fields::IndexedFields;
use crate::range::TextRange;

/// What entities of a kind are indexed by: one text or one number of theirs. A kind of entity declares its columns in an enum;
/// what plans do with them is the same for all kinds. Printed, a column is named as in filters.
pub trait Column: Clone + Debug + Display + PartialEq {
    /// How plans name the list of all entities.
    const ALL: &'static str;

    /// Whether there is a list by its values. Numbers always have one.
    fn is_listed(&self, fields: &IndexedFields) -> bool;

    /// Whether some entities have nothing there.
    fn may_be_missing(&self) -> bool;

    /// The field by whose words and trigrams entities are found, if they are.
    fn text_field(&self, fields: &IndexedFields) -> Option<String>;

    /// All values it can have, in their order, if these are few: then there is a list for each. None otherwise.
    fn values(&self) -> &'static [&'static str] {
        &[]
    }

    /// The part of all entities that have one of these texts, if nothing else is known.
    fn share(&self, range: &TextRange) -> f64 {
        share_of_text(range, 0.1)
    }
}

/// The part of all entities that have one of these texts, where so many have a given one.
pub(crate) fn share_of_text(range: &TextRange, equal: f64) -> f64 {
    match range {
        TextRange::Equal(_) => equal,
        TextRange::Prefix(beginning) if beginning.is_empty() => 0.8,
        TextRange::Prefix(_) => equal * 2.0,
    }
}
