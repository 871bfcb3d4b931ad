//! IDs of traces and spans.

use std::fmt::Write;

/// Prefix of all trace IDs that were created from OpenTelemetry IDs.
const PREFIX: &str = "tr-";

/// Returns MLflow's ID of a trace: `tr-` and the OpenTelemetry ID in hex.
#[must_use]
pub fn trace_id_text(id: &[u8; 16]) -> String {
    format!("{PREFIX}{}", hex(id))
}

/// Returns the OpenTelemetry ID in MLflow's ID of a trace, or `None` if the ID was not created from
/// one.
#[must_use]
pub fn trace_id(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix(PREFIX)?;
    let lower = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 32 || !lower {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

/// Formats bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Converts an ID to a number of `N` bytes. Shorter IDs are padded with zeros. Longer IDs are
/// accepted if their extra bytes are zero.
pub(crate) fn sized<const N: usize>(id: &[u8]) -> Option<[u8; N]> {
    let significant = &id[id.iter().position(|byte| *byte != 0).unwrap_or(id.len())..];
    let mut sized = [0; N];
    let from = N.checked_sub(significant.len())?;
    sized.get_mut(from..)?.copy_from_slice(significant);
    Some(sized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_two_forms() {
        let id = 0x0123_u128.to_be_bytes();
        assert_eq!(trace_id_text(&id), "tr-00000000000000000000000000000123");
        assert_eq!(trace_id(&trace_id_text(&id)), Some(id));
        for other in
            ["tr-", "tr-0123", "0123", "tr-0000000000000000000000000000012G", "tr-+0000000000000000000000000000123"]
        {
            assert_eq!(trace_id(other), None, "{other}");
        }
    }

    #[test]
    fn ids_are_numbers() {
        assert_eq!(sized::<4>(&[1, 2]), Some([0, 0, 1, 2]));
        assert_eq!(sized::<4>(&[0, 0, 0, 1, 2]), Some([0, 0, 1, 2]));
        assert_eq!(sized::<4>(&[1, 0, 0, 0, 2]), None);
    }
}
