//! The columns by which entities are indexed.

use std::fmt::{Debug, Display};

use crate::fields::CommonFields;
use crate::range::TextRange;

/// The columns by which a kind of entity is indexed: texts and numbers. Each kind declares its
/// columns; plans use them alike for all kinds. Printed, a column is named as in filters.
pub trait Columns: Clone + Debug + PartialEq {
    /// A text.
    type Text: TextColumn;
    /// A number. There is a list by each, and some entities may have nothing there.
    type Number: Clone + Debug + Display + PartialEq;

    /// How plans name the list of all entities.
    const ALL: &'static str;
}

/// A text that entities are indexed by.
pub trait TextColumn: Clone + Debug + Display + PartialEq {
    /// Whether there is a list by its values.
    fn is_listed(&self, fields: &CommonFields) -> bool;

    /// Whether some entities have nothing there.
    fn may_be_missing(&self) -> bool;

    /// Whether an entity may have several values of it. Then any of them may pass.
    fn may_be_several(&self) -> bool {
        false
    }

    /// The field by whose tokens entities are found, if they are.
    fn text_field(&self, fields: &CommonFields) -> Option<String>;

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
