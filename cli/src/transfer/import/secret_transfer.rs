//! The keys for the secrets of webhooks: MLflow's, which opens them, and that of this server, which
//! seals them.

use std::path::Path;

use secrets::{KmsKey, Secret, SecretContext, SecretKeys};

use super::fernet::FernetKey;
use crate::Failure;
use crate::webhook_options::open_key_file;

/// Environment variable with the key that MLflow encrypts the secrets of webhooks with.
pub(crate) const SOURCE_KEY_VARIABLE: &str = "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY";

/// The keys for the secrets of an import.
pub(crate) struct SecretTransfer {
    source: Option<FernetKey>,
    target: SecretKeys,
    /// Whether there is a key that seals secrets. In a dry run, `target` may be missing nevertheless.
    can_seal: bool,
}

/// A secret of the source.
pub(crate) enum SourceSecret {
    /// The webhook has no secret.
    None,
    /// The secret in the clear.
    Readable(Secret),
    /// The secret cannot be decrypted. The field is the reason, as a clause that completes "not
    /// imported, ".
    Unreadable(&'static str),
}

impl SecretTransfer {
    /// Reads the key of the source from the environment, and opens the key of this server: a key file,
    /// which is created if it is missing, or a key of KMS, by its ARN. In a dry run, opens nothing.
    ///
    /// # Errors
    /// One of the keys is malformed, or the file cannot be read or created.
    pub(super) fn open(target: Option<&str>, is_dry_run: bool) -> Result<Self, Failure> {
        let source = match std::env::var(SOURCE_KEY_VARIABLE) {
            Ok(key) if !key.is_empty() => {
                let key = FernetKey::parse(&key);
                Some(key.ok_or_else(|| format!("{SOURCE_KEY_VARIABLE} is not a key of MLflow: 32 bytes in base64"))?)
            }
            _ => None,
        };
        let can_seal = target.is_some();
        let target = match target {
            Some(arn) if arn.starts_with("arn:") => SecretKeys::Kms(KmsKey::new(arn.to_owned())),
            Some(path) if !is_dry_run || Path::new(path).exists() => open_key_file(Path::new(path))?,
            _ => SecretKeys::None,
        };
        Ok(Self { source, target, can_seal })
    }

    /// Returns whether there is a key that opens the secrets of the source.
    pub(crate) fn can_open(&self) -> bool {
        self.source.is_some()
    }

    /// Returns whether there is a key that seals secrets.
    pub(crate) fn can_seal(&self) -> bool {
        self.can_seal
    }

    /// Opens a secret of the source.
    pub(crate) fn open_secret(&self, encrypted: Option<&str>) -> SourceSecret {
        let Some(encrypted) = encrypted else { return SourceSecret::None };
        let Some(key) = &self.source else {
            return SourceSecret::Unreadable("because MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY is not set");
        };
        match key.open(encrypted) {
            Some(secret) if secret.expose().is_empty() => SourceSecret::None,
            Some(secret) => SourceSecret::Readable(secret),
            None => SourceSecret::Unreadable("because MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY does not decrypt them"),
        }
    }

    /// Seals a secret for its owner on this server. Takes one request if the key is in KMS.
    ///
    /// # Errors
    /// The key cannot be used, or the secret is too long.
    pub(crate) async fn seal(&self, secret: &Secret, context: &SecretContext<'_>) -> Result<Vec<u8>, Failure> {
        let sealed = self.target.seal(secret, context).await;
        Ok(sealed.map_err(|error| format!("cannot encrypt a secret: {error}"))?.into_bytes())
    }
}
