//! Documents that can be changed in parts, and their changes.

use key_schema::{Key, Name};
use mlflow_api::{Error, Result, python};
use table::{Condition, Item, Update, Value};

/// Maximum size, in bytes, of a value that is stored in the document itself.
pub const MAX_INLINE_VALUE_BYTES: usize = 1_024;

/// A document that can be changed.
pub trait Document {
    /// Returns the document's key.
    fn key(&self) -> Key;
    /// Returns the key of a param's row. A document without params can keep this default
    /// implementation, which is never called.
    fn param_row(&self, param: &Name) -> Key {
        self.tag_row(param)
    }
    /// Returns the key of a tag's row.
    fn tag_row(&self, tag: &Name) -> Key;
    /// Returns the maximum size, in bytes, of a tag's value that is stored in the document itself.
    /// Once the document is full, new tags are stored in rows whatever their size.
    fn inline_value(&self) -> usize {
        MAX_INLINE_VALUE_BYTES
    }
    /// Returns the condition under which the document may be written.
    fn writable(&self) -> Condition;
    /// Adds to an update the changes that accompany every change of the document.
    fn finished(&self, update: Update) -> Update {
        update
    }
    /// Returns MLflow's error if the document may not be written in its current state.
    fn check(&self, item: Option<&Item>) -> Result<()>;
    /// Returns MLflow's error for params that already have values other than the requested ones.
    fn params_differ(&self, conflicts: &[ParamConflict]) -> Error {
        Error::invalid(format!("Params have other values already: {}", print_conflicts(conflicts)))
    }
}

/// A param that has another value already.
#[derive(Clone, Debug)]
pub struct ParamConflict {
    /// Key of the param.
    pub key: String,
    /// Value that the param has.
    pub old_value: String,
    /// Value that the param was supposed to get.
    pub new_value: String,
}

/// A change of a document. If a key occurs more than once, its last value applies.
#[derive(Clone, Debug, Default)]
pub struct DocumentChange {
    /// Params to add. It is an error if a param already exists with another value.
    pub params: Vec<(String, String)>,
    /// Tags to set. The value of an existing tag is replaced.
    pub tags: Vec<(String, String)>,
    /// Other attributes to set.
    pub set: Vec<(&'static str, Value)>,
    /// Other attributes to remove.
    pub remove: Vec<&'static str>,
    /// Elements to add to attributes that are sets.
    pub add: Vec<(String, Value)>,
}

pub(crate) fn conflict(key: &str, old_value: &str, new_value: &str) -> ParamConflict {
    ParamConflict { key: key.to_owned(), old_value: old_value.to_owned(), new_value: new_value.to_owned() }
}

/// Formats the conflicts as Python prints them.
#[must_use]
pub fn print_conflicts(conflicts: &[ParamConflict]) -> String {
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
