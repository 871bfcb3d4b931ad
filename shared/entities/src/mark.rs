//! The mark of items that have changed since they were indexed.
//!
//! Every write to a run's documents sets the mark, which is a key of a sparse local index, and
//! counts the revision up. The indexer takes the mark off on condition that the revision is still
//! the one it indexed. So at any moment, a consistent read of this index gives the runs that a
//! search must not take from the other indexes. Setting a mark that is set costs nothing.

use key_schema::index::RunsChanged;
use mlflow_api::RunId;
use table::{Item, Update, number};

use crate::attributes::REVISION;

/// Updates that can carry the mark.
pub trait Marked {
    /// The same write, which also marks the run as changed.
    #[must_use]
    fn marked(self, run: &RunId) -> Self;
}

impl Marked for Update {
    fn marked(self, run: &RunId) -> Self {
        self.indexed(RunsChanged::key(run)).add(REVISION, number(1))
    }
}

/// A new item of a run, marked as changed.
#[must_use]
pub fn marked_item(item: Item, run: &RunId) -> Item {
    item.indexed(RunsChanged::key(run)).with(REVISION, number(1))
}
