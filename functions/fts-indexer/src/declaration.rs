//! The declaration of the function for the stack.

use domain::{EnvironmentSetting, Function, Indexes, TableActions, TableRights};

/// The indexer, which consumes the table's stream.
pub const FUNCTION: Function = Function {
    name: "fts-indexer",
    resource: "Indexer",
    description: "The indexer: keeps what searches read up to date, from the table's stream.",
    table: Some(TableRights {
        actions: TableActions::Index,
        // When packing traces, it reads where blocks end, and which client request IDs are indexed.
        // `reindex` reads other indexes, with an operator's permissions.
        indexes: Indexes::Only(&["LSI1", "GSI1"]),
        why: "It reads what has changed, and writes the index.",
    }),
    settings: &[EnvironmentSetting::RunIndexingInterval],
    // All changes of an experiment are in one shard of the stream, so a single process has to keep
    // up with them (docs/measured/scale.md).
    memory: Function::WHOLE_CORE_MB,
    // Sufficient for a batch of a thousand changes. Changes that are not processed after 90 seconds
    // are delivered again. If a batch times out, it is delivered again with half of the changes.
    timeout: 120,
    has_concurrency: true,
    ..Function::BASE
};
