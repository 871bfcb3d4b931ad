//! A script that renews the sessions of users who have signed in at an identity provider. The page
//! loads it before the build's own scripts, because it wraps `fetch`.

/// Path of the script.
pub(crate) const SCRIPT_PATH: &str = "/static-files/session_renewal.js";

/// A script that renews the session shortly before it is due, once for all tabs of the browser. It
/// repeats requests that the server has refused because the session was overdue.
pub(crate) const SCRIPT: &str = include_str!("session_renewal.js");
