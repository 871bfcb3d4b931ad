//! The attributes that items of a row may have, as declared by rows and indexes.

use crate::definition::{Index, PK, SK};
use crate::index::INDEX_KEYS;
use crate::rows::{ROWS, RowDescription};
use crate::{Key, access_rows};

impl RowDescription {
    /// Returns the row, of either table, whose form the key has.
    #[must_use]
    pub fn of(key: &Key) -> Option<&'static Self> {
        ROWS.iter().chain(access_rows::ROWS).find(|row| (row.has_form)(key))
    }

    /// Returns the undeclared attributes of an item, given the names of its attributes and
    /// DynamoDB's codes of their types. For tests of code that writes items.
    #[must_use]
    pub fn undeclared<'a>(key: &Key, attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
        let Some(row) = Self::of(key) else { return vec![format!("no row has the form of {key:?}")] };
        let undeclared = attributes.into_iter().filter(|(name, code)| !row.declares(name, code));
        undeclared.map(|(name, code)| format!("{} has {name} of type {code}", row.name)).collect()
    }

    /// Returns the indexes that items of the row may be in.
    pub fn indexes(&self) -> impl Iterator<Item = &'static Index> + use<> {
        let name = self.name;
        let keys = INDEX_KEYS.iter().filter(move |key| key.rows.iter().any(|row| row.name == name));
        keys.map(|key| key.index)
    }

    /// Checks whether items of the row may have an attribute of this name and DynamoDB type code.
    #[must_use]
    pub fn declares(&self, name: &str, code: &str) -> bool {
        let of_a_key = |attribute: &str| attribute == name && code == "S";
        let of_an_index = |index: &Index| of_a_key(index.partition) || of_a_key(index.sort);
        of_a_key(PK)
            || of_a_key(SK)
            || self.indexes().any(of_an_index)
            || self.attributes().any(|attribute| attribute.is_named(name) && attribute.kind.code == code)
    }
}
