//! The redirect URI, to which providers redirect browsers after signing in and out.

use permissions::browser_pages::SIGN_IN_PATH;

/// Returns the redirect URI at a configured origin, which is the sign-in page itself.
pub(super) fn redirect_uri(origin: &str) -> String {
    format!("{origin}{SIGN_IN_PATH}")
}
