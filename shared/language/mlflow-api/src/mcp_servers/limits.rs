//! Limits on the registry of MCP servers. Lengths are those of MLflow's database columns.

use crate::{Error, Result};

/// Maximum size of a version's `server_json`, tools and connection options together, in bytes of
/// JSON.
pub const MAX_CONTENT_BYTES: usize = 2 << 20;
/// Maximum size of a server's document, in bytes: its texts, icons, tags, aliases and access
/// endpoints, and the description and the icons of its latest version. An item has room for 400 KB.
pub const MAX_DOCUMENT_BYTES: usize = 256 << 10;
/// Maximum number of access endpoints of a server.
pub const MAX_ENDPOINTS: usize = 100;
/// Maximum number of servers on a page (`SEARCH_MCP_SERVER_MAX_RESULTS_THRESHOLD`).
pub const MAX_PAGE_OF_SERVERS: i64 = 1_000;
/// Maximum number of versions or access endpoints on a page (`SEARCH_MAX_RESULTS_THRESHOLD`).
pub const MAX_PAGE: i64 = 50_000;

pub(super) const MAX_DISPLAY_NAME_LENGTH: usize = 256;
pub(super) const MAX_DESCRIPTION_LENGTH: usize = 20_000;
pub(super) const MAX_SOURCE_LENGTH: usize = 512;
pub(super) const MAX_ALIAS_LENGTH: usize = 256;
pub(super) const MAX_TAG_KEY_LENGTH: usize = 250;
pub(super) const MAX_TAG_VALUE_LENGTH: usize = 5_000;
pub(super) const MAX_URL_LENGTH: usize = 2_048;

/// Checks the length of a text, in characters. `what` is the name of the field.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the text is longer.
pub fn at_most(what: &str, most: usize, text: &str) -> Result<()> {
    // A text has at least as many bytes as characters.
    if text.len() > most && text.chars().count() > most {
        return Err(Error::invalid(format!("The value of '{what}' has more than {most} characters.")));
    }
    Ok(())
}
