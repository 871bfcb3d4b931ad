//! Hashes of records, by which a repeated import recognizes changed entities.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Failure;

/// Returns a hash of a record, in 32 hexadecimal digits.
///
/// # Errors
/// The record cannot be written as JSON.
pub(crate) fn fingerprint(record: &impl Serialize) -> Result<String, Failure> {
    let digest = Sha256::digest(serde_json::to_vec(record)?);
    Ok(hex_digits(&digest))
}

/// Returns the first 16 bytes of a digest as 32 hexadecimal digits.
pub(super) fn hex_digits(digest: &[u8]) -> String {
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(bytes))
}
