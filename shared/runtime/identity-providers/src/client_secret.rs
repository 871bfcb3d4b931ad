//! Secrets: of the client, and refresh tokens.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use thiserror::Error;
use zeroize::Zeroizing;

/// Maximum length of a client secret in bytes.
const MAX_CLIENT_SECRET_BYTES: usize = 4 << 10;
/// Maximum length of a refresh token in bytes.
pub const MAX_REFRESH_TOKEN_BYTES: usize = 16 << 10;
/// Length of a key in bytes.
const KEY_BYTES: usize = 32;
/// Length of the authentication tag in bytes.
const TAG_BYTES: usize = 16;
/// The version of the format of sealed tokens: this byte, 12 bytes of nonce, the encrypted token
/// and 16 bytes of authentication.
const VERSION: u8 = 1;
/// Distinguishes this use of the client secret from others.
const PURPOSE: &[u8] = b"mlflow-serverless refresh tokens 1";

/// The secret with which this server authenticates at a provider. Its memory is overwritten when it
/// is dropped, and `Debug` does not print it.
#[derive(Clone)]
pub struct ClientSecret(Zeroizing<String>);

/// A refresh token in the clear. Its memory is overwritten when it is dropped, and `Debug` does not
/// print it.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshToken(Zeroizing<String>);

/// The place of a sealed refresh token. It can be opened in no other place.
#[derive(Clone, Copy, Debug)]
pub struct RefreshTokenPlace<'a> {
    /// Name of the provider.
    pub provider: &'a str,
    /// Digest of the session.
    pub session: &'a str,
}

/// Why a secret cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretTextError {
    /// The client secret is empty, too long, or contains a line break inside.
    #[error("the client secret has to be one line of 1 to {MAX_CLIENT_SECRET_BYTES} printable characters")]
    ClientSecret,
    /// The refresh token is empty, or longer than [`MAX_REFRESH_TOKEN_BYTES`].
    #[error("the refresh token is empty or longer than {MAX_REFRESH_TOKEN_BYTES} bytes")]
    RefreshToken,
    /// The sealed token was changed, was sealed in another place, or with another client secret.
    #[error("the stored refresh token cannot be decrypted; it was stored with another client secret, or was changed")]
    CannotOpen,
    /// The process cannot encrypt, for example because it has no random numbers.
    #[error("encryption failed")]
    Encryption,
}

impl ClientSecret {
    /// Returns the secret in a text, which may end with line breaks.
    ///
    /// # Errors
    /// [`SecretTextError::ClientSecret`].
    pub fn new(text: impl Into<String>) -> Result<Self, SecretTextError> {
        let text = Zeroizing::new(text.into());
        let secret = text.trim();
        let is_printable = !secret.chars().any(char::is_control);
        if secret.is_empty() || secret.len() > MAX_CLIENT_SECRET_BYTES || !is_printable {
            return Err(SecretTextError::ClientSecret);
        }
        Ok(Self(Zeroizing::new(secret.to_owned())))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the key for refresh tokens.
    fn key(&self) -> Result<RandomizedNonceKey, SecretTextError> {
        struct KeyLength;
        impl KeyType for KeyLength {
            fn len(&self) -> usize {
                KEY_BYTES
            }
        }
        let failed = |_| SecretTextError::Encryption;
        let extracted = Salt::new(HKDF_SHA256, PURPOSE).extract(self.0.as_bytes());
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        extracted.expand(&[PURPOSE], KeyLength).map_err(failed)?.fill(&mut *key).map_err(failed)?;
        RandomizedNonceKey::new(&AES_256_GCM, &*key).map_err(failed)
    }
}

impl RefreshToken {
    /// Returns a refresh token.
    ///
    /// # Errors
    /// [`SecretTextError::RefreshToken`].
    pub fn new(text: impl Into<String>) -> Result<Self, SecretTextError> {
        let text = Zeroizing::new(text.into());
        if text.is_empty() || text.len() > MAX_REFRESH_TOKEN_BYTES {
            return Err(SecretTextError::RefreshToken);
        }
        Ok(Self(text))
    }

    /// Returns the token.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Encrypts a refresh token for its place, with a key derived from the client secret.
///
/// # Errors
/// [`SecretTextError::Encryption`].
pub fn seal(
    secret: &ClientSecret,
    place: RefreshTokenPlace<'_>,
    token: &RefreshToken,
) -> Result<Vec<u8>, SecretTextError> {
    let key = secret.key()?;
    // The capacity includes the tag: reallocation would leave a copy of the clear text behind.
    let mut buffer = Vec::with_capacity(token.expose().len() + TAG_BYTES);
    buffer.extend_from_slice(token.expose().as_bytes());
    let nonce = key.seal_in_place_append_tag(Aad::from(place.authenticated_data()), &mut buffer);
    let nonce = nonce.map_err(|_| SecretTextError::Encryption)?;
    Ok([&[VERSION], nonce.as_ref().as_slice(), &buffer].concat())
}

/// Decrypts the output of [`seal`].
///
/// # Errors
/// [`SecretTextError::CannotOpen`].
pub fn open(
    secret: &ClientSecret,
    place: RefreshTokenPlace<'_>,
    sealed: &[u8],
) -> Result<RefreshToken, SecretTextError> {
    let key = secret.key()?;
    let sealed = sealed.strip_prefix(&[VERSION]).ok_or(SecretTextError::CannotOpen)?;
    let (nonce, encrypted) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(SecretTextError::CannotOpen)?;
    let mut buffer = Zeroizing::new(encrypted.to_vec());
    let clear = key.open_in_place(Nonce::from(nonce), Aad::from(place.authenticated_data()), &mut buffer);
    let clear = clear.map_err(|_| SecretTextError::CannotOpen)?;
    let text = std::str::from_utf8(clear).map_err(|_| SecretTextError::CannotOpen)?;
    RefreshToken::new(text).map_err(|_| SecretTextError::CannotOpen)
}

impl RefreshTokenPlace<'_> {
    fn authenticated_data(&self) -> Vec<u8> {
        // The length of the provider's name separates the two parts unambiguously.
        let Self { provider, session } = self;
        format!("{}:{provider}{session}", provider.len()).into_bytes()
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClientSecret(…)")
    }
}

impl fmt::Debug for RefreshToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RefreshToken(…)")
    }
}

#[cfg(test)]
mod tests;
