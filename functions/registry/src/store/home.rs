//! Homes: in which partition a model's rows are.
//!
//! The row of a home says what its model is called now. A write that goes to a version by name alone checks it, so that a model
//! that was renamed or deleted is changed under its old name by nobody.

use key_schema::{Key, Name, rows};
use table::{Condition, Item, Write, text};

use super::attributes::{ID, NAME};

/// The row of a home.
pub(super) fn home_row(home: &str, id: &str, name: &str) -> Item {
    Item::new(home_key(home)).with(ID, text(id)).with(NAME, text(name))
}

pub(super) fn home_key(home: &str) -> Key {
    rows::ModelHome::key(&Name::from(home))
}

/// A part of a transaction: the rows in the partition of this name are those of the model of this name.
pub(super) fn is_at_home(name: &str) -> Write {
    Write::Check(home_key(name), Condition::Equals(NAME.into(), text(name)))
}

/// A home that no other model has had or will have: a name has no colon.
pub(super) fn new_home(name: &str, id: &str) -> String {
    format!("{name}:{id}")
}
