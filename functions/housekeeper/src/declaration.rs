//! The declaration of the function for the stack.

use domain::{BucketRight, EnvironmentSetting, Function, Indexes, TableActions, TableRights};

/// The housekeeper, which is invoked by a schedule.
pub const FUNCTION: Function = Function {
    name: "housekeeper",
    resource: "Housekeeper",
    description: "The housekeeper: deletes what the retention policies no longer keep, on a schedule.",
    table: Some(TableRights {
        // Restoring an experiment restores its runs without writing to them, so deleting a run
        // permanently has to check the experiment.
        actions: TableActions::Write,
        // LSI1: deleted entities, and blocks of traces. LSI2: all runs, by start and by end time.
        indexes: Indexes::Only(&["LSI1", "LSI2"]),
        why: "It finds what is deleted or expired, and removes it.",
    }),
    bucket: &[BucketRight::List, BucketRight::Delete],
    settings: &[EnvironmentSetting::Artifacts],
    // A call has a limited time for as many removals as possible.
    memory: Function::WHOLE_CORE_MB,
    timeout: 300,
    ..Function::BASE
};
