//! Fernet, with which MLflow encrypts the secrets of webhooks: a version, a time, an initialization
//! vector, a ciphertext of AES-128 in CBC mode, and the HMAC-SHA256 of all of them.

use aws_lc_rs::cipher::{AES_128, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrets::Secret;

/// Base64 of keys and tokens. Padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Size of each of the two keys, in bytes: the first one authenticates, the second one encrypts.
const KEY_BYTES: usize = 16;
/// The only version.
const VERSION: u8 = 0x80;
/// Size of the version and the time, in bytes.
const HEADER_BYTES: usize = 9;
/// Size of the authentication code, in bytes.
const TAG_BYTES: usize = 32;

/// A key of Fernet.
pub(super) struct FernetKey(Secret);

impl FernetKey {
    /// Parses a key: 32 bytes in base64.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let key = Secret::from(BASE64.decode(text.trim()).ok()?);
        (key.expose().len() == 2 * KEY_BYTES).then_some(Self(key))
    }

    /// Decrypts a token. Returns `None` if it was encrypted with another key, or is malformed.
    pub(super) fn open(&self, token: &str) -> Option<Secret> {
        let token = BASE64.decode(token).ok()?;
        let (authentication, encryption) = self.0.expose().split_at_checked(KEY_BYTES)?;
        let (signed, tag) = token.split_last_chunk::<TAG_BYTES>()?;
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, authentication), signed, tag).ok()?;
        let (header, rest) = signed.split_at_checked(HEADER_BYTES)?;
        if header.first() != Some(&VERSION) {
            return None;
        }
        let (vector, ciphertext) = rest.split_first_chunk::<16>()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(UnboundCipherKey::new(&AES_128, encryption).ok()?).ok()?;
        let mut buffer = ciphertext.to_vec();
        let length = key.decrypt(&mut buffer, DecryptionContext::Iv128(FixedLength::from(vector))).ok()?.len();
        buffer.truncate(length);
        Some(Secret::from(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Fernet's specification.
    const KEY: &str = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=";
    const TOKEN: &str =
        "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==";

    #[test]
    fn the_example_of_the_specification_is_decrypted() {
        let key = FernetKey::parse(KEY).unwrap();
        assert_eq!(key.open(TOKEN).unwrap().expose(), b"hello");
        assert_eq!(key.open(TOKEN.trim_end_matches('=')).unwrap().expose(), b"hello");
    }

    #[test]
    fn other_tokens_and_keys_are_refused() {
        let key = FernetKey::parse(KEY).unwrap();
        for token in ["", "gAAAAAAdwJ6w", &TOKEN.replacen("wAAE", "wAAF", 1), &TOKEN.replacen("gAAA", "gQAA", 1), "%"] {
            assert!(key.open(token).is_none(), "{token}");
        }
        assert!(FernetKey::parse(&KEY.replacen("cw", "dw", 1)).unwrap().open(TOKEN).is_none());
        for key in ["", "cw_0", "x"] {
            assert!(FernetKey::parse(key).is_none(), "{key}");
        }
    }
}
