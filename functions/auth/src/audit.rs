//! Who has changed what about users: a line in the log for each change.

use std::fmt;

use access::Scope;

/// Says in the log that the caller has done this. What is said holds no secret, and is escaped: clients have chosen names in it.
pub(crate) fn changed(scope: &Scope, event: &'static str, what: fmt::Arguments<'_>) {
    let by = scope.caller().name();
    tracing::info!(target: "audit", event, ?by, what = ?what.to_string());
}
