//! The index of runs: which entries a run has, where they are stored, and how they are read and
//! deleted.
//!
//! The protocol is described in `docs/design/run-index.md`. Only the indexer (`functions/fts-indexer`)
//! writes entries and copies of runs, and this crate determines the entries. `functions/tracking`
//! plans searches with the crate `search` and reads the lists with this one. `reindex`, `gc` and
//! the housekeeper have runs indexed again, and delete what no longer belongs to any run.
//!
//! | module | what it does |
//! |---|---|
//! | [`entries`] | determines the entries of a run from its documents or its copy |
//! | [`lists`] | determines the key ranges of the lists |
//! | [`cursor`], [`join`], [`intersection`] | read one list, several in parallel, or several completely |
//! | [`list_walker`] | reads lists one after another, in the order of a search |
//! | [`candidate_source`], [`candidate`] | the runs that any of these returns, to be read and checked |
//! | [`indexed_fields_cache`] | caches which fields searches may rely on |
//! | [`list_directory`] | records the lists of an experiment, so that its entries can be found |
//! | [`rebuild`] | has runs indexed again, and deletes entries that follow from no copy |
//! | [`removal`] | deletes the data that deleted entities leave behind |

mod candidate;
mod candidate_source;
mod cursor;
mod entries;
mod indexed_fields_cache;
mod intersection;
mod join;
mod list_directory;
mod list_walker;
mod lists;
mod rebuild;
mod removal;

use table::Table;

pub use candidate::Candidate;
pub use candidate_source::CandidateSource;
pub use cursor::{HEAD_ENTRIES, ListCursor};
pub use entries::{CopyEntries, ListIdentity, RunEntries, entries_of_copy, run_entries};
pub use indexed_fields_cache::IndexedFieldsCache;
pub use intersection::in_all;
pub use join::ListJoin;
pub use list_directory::ListDirectory;
pub use list_walker::ListWalker;
pub use lists::{ListEntry, RunLists};
pub use rebuild::{MAX_ENTRIES_IN_MEMORY, UnmarkedRuns};

/// The index of the runs in a table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunIndex {
    table: Table,
}

impl RunIndex {
    /// Creates the index of a table, for background work that no client waits for.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table: table.in_background() }
    }
}
