//! The format of a sealed secret, and the encryption of its two layers with AES-256-GCM.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version of the format |
//! | 1 | kind of the key that wraps the data key |
//! | 2 | length of the wrapped data key, big-endian |
//! | … | the wrapped data key |
//! | 12 | nonce |
//! | … | the encrypted secret, and 16 bytes of authentication |
//!
//! The first two bytes are authenticated with the secret, and the wrapped key authenticates itself.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use zeroize::Zeroizing;

use crate::context::SecretContext;
use crate::error::SecretError;
use crate::secret::{MAX_SECRET_BYTES, SealedSecret, Secret};

/// Length of a key in bytes.
pub(crate) const KEY_BYTES: usize = 32;
/// Length of the authentication tag of AES-GCM in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// The version of the format.
const VERSION: u8 = 1;
/// The name of the layer that contains the secret.
const DATA_LAYER: &str = "mlflow-serverless secret";

/// A key in the clear.
pub(crate) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The kind of the key that wraps data keys. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Kms = 1,
    File = 2,
}

/// A sealed secret whose data key has not been unwrapped yet.
pub(crate) struct Envelope<'a> {
    pub(crate) kind: KeyKind,
    pub(crate) wrapped_key: &'a [u8],
    encrypted: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Splits a sealed secret into its parts.
    pub(crate) fn parse(sealed: &'a SealedSecret) -> Result<Self, SecretError> {
        let parse = || {
            let (&[version, kind, high, low], rest) = sealed.as_bytes().split_first_chunk::<4>()?;
            let kind = [KeyKind::Kms, KeyKind::File].into_iter().find(|known| *known as u8 == kind)?;
            let (wrapped_key, encrypted) = rest.split_at_checked(u16::from_be_bytes([high, low]).into())?;
            (version == VERSION).then_some(Self { kind, wrapped_key, encrypted })
        };
        parse().ok_or(SecretError::Tampered)
    }

    /// Decrypts the secret with its unwrapped data key.
    pub(crate) fn open(&self, key: &Key, context: &SecretContext<'_>) -> Result<Secret, SecretError> {
        let secret = decrypt(key, self.encrypted, &authenticated_data(self.kind, context))?;
        Ok(Secret::from(secret))
    }
}

/// Encrypts a secret with a data key. Each data key encrypts only one secret.
pub(crate) fn seal(
    secret: &Secret,
    key: &Key,
    (kind, wrapped_key): (KeyKind, &[u8]),
    context: &SecretContext<'_>,
) -> Result<SealedSecret, SecretError> {
    check_length(secret)?;
    let length = u16::try_from(wrapped_key.len()).map_err(|_| SecretError::Encryption)?;
    let mut sealed = vec![VERSION, kind as u8];
    sealed.extend_from_slice(&length.to_be_bytes());
    sealed.extend_from_slice(wrapped_key);
    sealed.extend_from_slice(&encrypt(key, secret.expose(), &authenticated_data(kind, context))?);
    Ok(SealedSecret::from(sealed))
}

/// Checks the length of a secret.
pub(crate) fn check_length(secret: &Secret) -> Result<(), SecretError> {
    if secret.expose().len() > MAX_SECRET_BYTES { Err(SecretError::TooLong) } else { Ok(()) }
}

fn authenticated_data(kind: KeyKind, context: &SecretContext<'_>) -> Vec<u8> {
    let mut data = vec![VERSION, kind as u8];
    data.extend_from_slice(&context.authenticated_data(DATA_LAYER));
    data
}

/// Encrypts bytes with a random nonce. Returns the nonce, followed by the encrypted bytes.
pub(crate) fn encrypt(key: &Key, clear: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, SecretError> {
    let key = RandomizedNonceKey::new(&AES_256_GCM, &**key).map_err(|_| SecretError::Encryption)?;
    // The capacity includes the tag: reallocation would leave a copy of the clear text behind.
    let mut buffer = Vec::with_capacity(clear.len() + TAG_BYTES);
    buffer.extend_from_slice(clear);
    let nonce = key.seal_in_place_append_tag(Aad::from(authenticated), &mut buffer);
    let nonce = nonce.map_err(|_| SecretError::Encryption)?;
    Ok([nonce.as_ref().as_slice(), &buffer].concat())
}

/// Decrypts the output of [`encrypt`].
pub(crate) fn decrypt(key: &Key, encrypted: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, SecretError> {
    let key = RandomizedNonceKey::new(&AES_256_GCM, &**key).map_err(|_| SecretError::Encryption)?;
    let (nonce, encrypted) = encrypted.split_first_chunk::<NONCE_LEN>().ok_or(SecretError::Tampered)?;
    let mut buffer = encrypted.to_vec();
    let clear = key.open_in_place(Nonce::from(nonce), Aad::from(authenticated), &mut buffer);
    let length = clear.map_err(|_| SecretError::Tampered)?.len();
    buffer.truncate(length);
    Ok(buffer)
}

/// Returns a new random key.
pub(crate) fn random_key() -> Result<Key, SecretError> {
    let mut key = Key::default();
    aws_lc_rs::rand::fill(&mut *key).map_err(|_| SecretError::Encryption)?;
    Ok(key)
}
