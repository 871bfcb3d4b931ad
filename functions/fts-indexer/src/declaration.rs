//! The declaration of the function for the stack.

use domain::{BucketRight, EnvironmentSetting, Function, Indexes, TableActions, TableRights};

/// The indexer, which consumes the table's stream.
pub const FUNCTION: Function = Function {
    name: "fts-indexer",
    resource: "Indexer",
    description: "The indexer: keeps what searches read up to date, from the table's stream.",
    table: Some(TableRights {
        actions: TableActions::Index,
        // The indexer needs two indexes for packing traces: one contains the ends of blocks, and
        // the other one the client request IDs that are indexed. `reindex` reads further indexes,
        // with an operator's permissions.
        indexes: Indexes::Only(&["LSI1", "GSI1"]),
        why: "It reads what has changed, and writes the index.",
    }),
    // Delivers events to webhooks.
    invokes: &["deliver"],
    bucket: &[BucketRight::List, BucketRight::ReadArchive],
    settings: &[EnvironmentSetting::Artifacts, EnvironmentSetting::RunIndexingInterval],
    // All changes of an experiment are in one shard of the stream, so a single process has to keep
    // up with them (docs/measured/scale.md).
    memory: Function::WHOLE_CORE_MB,
    // Timeout in seconds. It is sufficient for a batch of a thousand changes: changes that have not
    // been processed after 90 seconds are reported for redelivery. If a batch times out
    // nevertheless, Lambda delivers it again in two halves.
    timeout: 120,
    has_concurrency: true,
    ..Function::BASE
};
