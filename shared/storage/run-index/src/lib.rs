//! The index of runs: which entries a run has, where they are, and how they are read and removed.
//!
//! `docs/run-index.md` tells the protocol. Only the indexer (`functions/fts-indexer`) puts entries
//! and copies of runs. It takes the entries from here. `functions/tracking` plans a search with the
//! crate `search`, and reads the lists with this one. `reindex`, `gc` and the housekeeper have runs
//! indexed again, and delete what belongs to no run any more.
//!
//! | module | what it does |
//! |---|---|
//! | [`entries`] | says which entries a run has, by its documents or by its copy |
//! | [`lists`] | says where the lists are |
//! | [`cursor`], [`join`], [`whole`] | read one list, several side by side, or some as a whole |
//! | [`walker`] | reads lists one after another, in the order of a search |
//! | [`source`], [`candidate`] | the runs that any of these yields, to be read and checked |
//! | [`indexed_fields`] | remembers which fields searches may rely on |
//! | [`directory`] | names the lists of an experiment, so that its entries are found |
//! | [`rebuild`] | has runs indexed again, and deletes entries that no copy knows |
//! | [`removal`] | removes what deleted entities leave |

mod candidate;
mod cursor;
mod directory;
mod entries;
mod indexed_fields;
mod join;
mod lists;
mod rebuild;
mod removal;
mod source;
mod walker;
mod whole;

use table::Table;

pub use candidate::Candidate;
pub use cursor::{Cursor, HEAD};
pub use directory::Directory;
pub use entries::{Entries, EntriesOfCopy, ListOf, entries_of_copy, run_entries};
pub use indexed_fields::IndexedFieldsCache;
pub use join::Join;
pub use lists::{Entry, RunLists};
pub use rebuild::{HELD_AT_ONCE, Unmarked};
pub use source::Source;
pub use walker::Walker;
pub use whole::in_all;

/// The index of the runs in a table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunIndex {
    table: Table,
}

impl RunIndex {
    /// The index in this table, for work that no client waits for.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table: table.in_background() }
    }
}
