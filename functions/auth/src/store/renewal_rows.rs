//! The rows of renewals.

use key_schema::{Key, access_rows};
use mlflow_api::{Error, Result, UserName};

/// Maximum length of an encrypted refresh token in bytes. Tokens of the large providers have up to
/// 2 KB.
pub const MAX_SEALED_BYTES: usize = 32 << 10;

/// Returns the key of the renewal of a session, from the digest of the session's secret.
pub(super) fn renewal_key(user: &UserName, digest: &str) -> Key {
    access_rows::Renewal::key(user, &digest.into())
}

/// Checks the length of an encrypted refresh token.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if it is too long.
pub(super) fn check_sealed(sealed: &[u8]) -> Result<()> {
    if sealed.len() <= MAX_SEALED_BYTES {
        return Ok(());
    }
    Err(Error::invalid(format!("The refresh token of the provider has more than {MAX_SEALED_BYTES} bytes.")))
}
