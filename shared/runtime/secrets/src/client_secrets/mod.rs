//! Client secrets: with them, this server authenticates at identity providers. Operators store one
//! per provider, in Parameter Store or in a directory.

mod error;
mod files;
mod parameter_store;

use std::path::PathBuf;

pub use error::ClientSecretError;
pub use parameter_store::ParameterStore;

use crate::secret::Secret;

/// Maximum length of a client secret in bytes, which is the limit of Parameter Store for standard
/// parameters. The secrets of providers have up to about 100 bytes.
const MAX_CLIENT_SECRET_BYTES: usize = 4 << 10;

/// The place where the client secrets of identity providers are stored.
#[derive(Debug, Default)]
pub enum ClientSecrets {
    /// No place is configured.
    #[default]
    None,
    /// A directory with a file for each provider.
    Directory(PathBuf),
    /// Parameter Store, with a parameter for each provider.
    ParameterStore(Box<ParameterStore>),
}

impl ClientSecrets {
    /// Reads the client secret of a provider, without surrounding white space. `provider` is the
    /// provider's name, which consists of lower-case letters, digits and hyphens. Takes one request
    /// to Parameter Store, or reads one file.
    ///
    /// # Errors
    /// A [`ClientSecretError`], whose message says where the secret was expected and what to do.
    pub async fn read(&self, provider: &str) -> Result<Secret, ClientSecretError> {
        // The name becomes part of a path, so it is checked again here.
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if provider.is_empty() || !provider.bytes().all(is_name) {
            return Err(ClientSecretError::Malformed { place: format!("{provider:?}") });
        }
        match self {
            Self::None => Err(ClientSecretError::NotConfigured),
            Self::Directory(directory) => files::read(&directory.join(provider)),
            Self::ParameterStore(store) => store.read(provider).await,
        }
    }
}

/// Returns the client secret in the text of a file or parameter.
fn client_secret(text: &[u8], place: impl FnOnce() -> String) -> Result<Secret, ClientSecretError> {
    let secret = text.trim_ascii();
    let is_printable = secret.iter().all(|byte| (b' '..=b'~').contains(byte));
    if secret.is_empty() || secret.len() > MAX_CLIENT_SECRET_BYTES || !is_printable {
        return Err(ClientSecretError::Malformed { place: place() });
    }
    Ok(Secret::from(secret.to_vec()))
}

#[cfg(test)]
mod tests;
