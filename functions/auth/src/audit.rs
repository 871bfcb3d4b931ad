//! Logs changes of users: a line with the caller for each change.

use std::fmt;

use access::Scope;

/// Logs that the caller has made this change. The line holds no secret. It is escaped, as clients
/// have chosen names in it.
pub(crate) fn changed(scope: &Scope, event: &'static str, what: fmt::Arguments<'_>) {
    let by = scope.caller().name();
    tracing::info!(target: "audit", event, ?by, what = ?what.to_string());
}
