//! The declaration of the function for the stack.

use domain::{EnvironmentSetting, Function, Indexes, TableActions, TableRights};

/// The function that sends events to webhooks. The indexer and the function `webhooks` invoke it.
pub const FUNCTION: Function = Function {
    name: "deliver",
    resource: "Deliver",
    description: "Sends the events of the model registry to webhooks.",
    table: Some(TableRights {
        actions: TableActions::ChangeItems,
        indexes: Indexes::None,
        why: "It reads webhooks and their events, and removes what it has delivered.",
    }),
    key_prefixes: &["HOOK#"],
    settings: &[EnvironmentSetting::OpensSecrets],
    // Little memory, and thus little CPU, because the function waits for receivers most of the
    // time.
    memory: 256,
    // Timeout in seconds. An invocation starts attempts during its first 80 seconds, and the last
    // attempt takes up to 30.
    timeout: 120,
    ..Function::BASE
};
