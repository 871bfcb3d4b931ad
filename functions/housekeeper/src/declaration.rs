//! The declaration of the function for the stack.

use domain::{BucketRight, EnvironmentSetting, Function, Indexes, TableActions, TableRights};

/// The housekeeper, which is invoked by a schedule.
pub const FUNCTION: Function = Function {
    name: "housekeeper",
    resource: "Housekeeper",
    description: "The housekeeper: deletes what the retention policies no longer keep and archives old traces, on a schedule.",
    table: Some(TableRights {
        // The rights include transactions that check other items. A run is only deleted permanently
        // in a transaction that also checks its experiment, because restoring an experiment
        // restores its runs without writing to them.
        actions: TableActions::Write,
        // LSI1 contains deleted entities and blocks of traces. LSI2 contains all runs, by start and
        // by end time.
        indexes: Indexes::Only(&["LSI1", "LSI2"]),
        why: "It finds what is deleted, expired or old, and removes or archives it.",
    }),
    // It deletes and writes files: those of deleted entities, the archive, and the files of archived
    // traces.
    bucket: &[BucketRight::List, BucketRight::Change],
    settings: &[EnvironmentSetting::Artifacts],
    // The function gets a whole core, so that it deletes as much as possible within the time limit
    // of a call.
    memory: Function::WHOLE_CORE_MB,
    timeout: 300,
    ..Function::BASE
};
