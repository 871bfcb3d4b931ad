//! Hashes of records, by which a repeated import finds what has changed.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Failure;

/// Returns a hash of a record, in 32 hexadecimal digits.
///
/// # Errors
/// The record cannot be written as JSON.
pub(crate) fn fingerprint(record: &impl Serialize) -> Result<String, Failure> {
    let digest = Sha256::digest(serde_json::to_vec(record)?);
    Ok(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}
