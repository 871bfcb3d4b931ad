//! Audit log of changes to users, roles, grants and workspaces. Each change is one line, which
//! includes the caller.

use std::fmt;

use access::Scope;

/// Logs a change that the caller has made. The line contains no secrets. The caller and the
/// description are escaped, because they contain names that clients have chosen.
pub(crate) fn changed(scope: &Scope, event: &'static str, what: fmt::Arguments<'_>) {
    let by = scope.caller().name();
    tracing::info!(target: "audit", event, ?by, what = ?what.to_string());
}
