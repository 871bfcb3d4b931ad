//! The function in the stack.

use domain::{Function, Indexes, Setting, TableActions, TableRights};

/// The indexer, which the table's stream feeds.
pub const FUNCTION: Function = Function {
    name: "fts-indexer",
    resource: "Indexer",
    description: "The indexer: it keeps what searches read up to date, from the table's stream.",
    table: Some(TableRights {
        actions: TableActions::Index,
        // When it packs traces: where the packed ones end, and which clients' requests are found.
        // `reindex` reads others, with an operator's rights.
        indexes: Indexes::Only(&["LSI1", "GSI1"]),
        why: "It reads what has changed, and writes the index.",
    }),
    settings: &[Setting::RunIndexingInterval],
    // For a batch of a thousand changes. Changes that are not done after 90 seconds come again. If
    // a batch takes longer, it comes again with half of the changes.
    timeout: 120,
    has_concurrency: true,
    ..Function::BASE
};
