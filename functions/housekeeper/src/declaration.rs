//! The function in the stack.

use domain::{BucketRight, Function, Indexes, Setting, TableActions, TableRights};

/// The housekeeper, which a schedule calls.
pub const FUNCTION: Function = Function {
    name: "housekeeper",
    resource: "Housekeeper",
    description: "The housekeeper: it removes what the policies keep no longer, when a schedule calls it.",
    table: Some(TableRights {
        // Restoring an experiment restores its runs without writing to them. So removing a run
        // checks the experiment.
        actions: TableActions::Write,
        // What is deleted, the blocks of traces; and all runs of an experiment.
        indexes: Indexes::Only(&["LSI1", "LSI2"]),
        why: "It finds what is deleted or over, and removes it.",
    }),
    bucket: &[BucketRight::List, BucketRight::Remove],
    settings: &[Setting::Artifacts],
    timeout: 300,
    ..Function::BASE
};
