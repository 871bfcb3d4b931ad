//! The configured key, which seals and opens secrets.

use crate::context::SecretContext;
use crate::envelope::{self, Envelope, KeyKind};
use crate::error::SecretError;
use crate::key_file::KeyFile;
use crate::kms::KmsKey;
use crate::secret::{SealedSecret, Secret};

/// The key that is configured for secrets.
#[derive(Debug, Default)]
pub enum SecretKeys {
    /// A key of KMS.
    Kms(KmsKey),
    /// The key of a file.
    File(KeyFile),
    /// No key. Secrets can neither be sealed nor opened.
    #[default]
    None,
}

impl SecretKeys {
    /// Checks whether a key is configured.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Seals a secret of an entity, with a new data key.
    ///
    /// # Errors
    /// A [`SecretError`] if no key is configured, if the key cannot be used, or if the secret is
    /// too long.
    pub async fn seal(&self, secret: &Secret, context: &SecretContext<'_>) -> Result<SealedSecret, SecretError> {
        envelope::check_length(secret)?;
        let (kind, (key, wrapped)) = match self {
            Self::Kms(key) => (KeyKind::Kms, key.data_key(context).await?),
            Self::File(key) => (KeyKind::File, key.data_key(context)?),
            Self::None => return Err(SecretError::NotConfigured),
        };
        envelope::seal(secret, &key, (kind, &wrapped), context)
    }

    /// Opens a sealed secret of an entity.
    ///
    /// # Errors
    /// A [`SecretError`] if no key is configured, if the key cannot be used, or if the sealed secret
    /// was changed or belongs to another entity.
    pub async fn open(&self, sealed: &SealedSecret, context: &SecretContext<'_>) -> Result<Secret, SecretError> {
        let another = |kind| Err(SecretError::KeyUnavailable(format!("the secret was sealed with {kind}")));
        let envelope = Envelope::parse(sealed)?;
        let key = match (self, envelope.kind) {
            (Self::None, _) => return Err(SecretError::NotConfigured),
            (Self::Kms(key), KeyKind::Kms) => key.unwrap(envelope.wrapped_key, context).await?,
            (Self::File(key), KeyKind::File) => key.unwrap(envelope.wrapped_key, context)?,
            (Self::File(_), KeyKind::Kms) => return another("a key of KMS"),
            (Self::Kms(_), KeyKind::File) => return another("the key of a file"),
        };
        envelope.open(&key, context)
    }
}
