//! Documents that can be changed in parts, and their changes.

use key_schema::{Key, Name};
use mlflow_api::{Error, Result, python};
use table::{Condition, Item, Update, Value};

/// Longest value, in bytes, that goes into the document itself.
pub const INLINE_VALUE: usize = 1_024;

/// A document that can be changed.
pub trait Document {
    /// Its key.
    fn key(&self) -> Key;
    /// The key of a param's row. A document without params may use the key of a tag's row: it is
    /// never used.
    fn param_row(&self, param: &Name) -> Key {
        self.tag_row(param)
    }
    /// The key of a tag's row.
    fn tag_row(&self, tag: &Name) -> Key;
    /// Longest value of a tag, in bytes, that goes into the document itself while it is not full.
    fn inline_value(&self) -> usize {
        INLINE_VALUE
    }
    /// The condition under which it may be written.
    fn writable(&self) -> Condition;
    /// The write as it is sent: it adds the changes that come with any change of the document.
    fn finished(&self, update: Update) -> Update {
        update
    }
    /// MLflow's error if it may not be written as it is.
    fn check(&self, item: Option<&Item>) -> Result<()>;
    /// MLflow's error about params that have another value already.
    fn params_differ(&self, conflicts: &[Conflict]) -> Error {
        Error::invalid(format!("Params have other values already: {}", print_conflicts(conflicts)))
    }
}

/// A param that has another value already.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The param.
    pub key: String,
    /// The value it has.
    pub old_value: String,
    /// The value it was to get.
    pub new_value: String,
}

/// A change of a document. Of a key that comes twice, the last value counts.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Params; one that is there with another value is an error.
    pub params: Vec<(String, String)>,
    /// Tags; one that is there gets the new value.
    pub tags: Vec<(String, String)>,
    /// Other attributes to set.
    pub set: Vec<(&'static str, Value)>,
    /// Other attributes to remove.
    pub remove: Vec<&'static str>,
    /// Elements to add to attributes that are sets.
    pub add: Vec<(String, Value)>,
}

pub(crate) fn conflict(key: &str, old_value: &str, new_value: &str) -> Conflict {
    Conflict { key: key.to_owned(), old_value: old_value.to_owned(), new_value: new_value.to_owned() }
}

/// The conflicts as Python prints them.
#[must_use]
pub fn print_conflicts(conflicts: &[Conflict]) -> String {
    let printed: Vec<_> = conflicts
        .iter()
        .map(|conflict| {
            let [key, old, new] =
                [&conflict.key, &conflict.old_value, &conflict.new_value].map(|text| python::repr(text));
            format!("{{'key': {key}, 'old_value': {old}, 'new_value': {new}}}")
        })
        .collect();
    format!("[{}]", printed.join(", "))
}
