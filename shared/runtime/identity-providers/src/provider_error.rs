//! Errors of providers.

use thiserror::Error;

use crate::claims::ClaimsError;
use crate::jwt::JwtError;
use crate::transport::TransportError;

/// Why a provider did not sign in a person. Each message is one sentence without a final period. It
/// is meant for the sign-in page and the log, and contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProviderError {
    /// The provider cannot be reached, or does not respond properly. It may later.
    #[error("the provider cannot be reached: {0}")]
    Unavailable(String),
    /// The configuration, or the client's registration at the provider, has to be fixed.
    #[error("the provider is not set up correctly: {0}")]
    Misconfigured(String),
    /// The provider refuses this sign-in: the code has expired, or was used.
    #[error("the provider refused the sign-in: {0}")]
    Refused(String),
    /// The provider's token is not valid.
    #[error("the provider sent a token that is not valid: {0}")]
    Token(#[from] JwtError),
    /// The claims of the person do not suffice.
    #[error(transparent)]
    Claims(#[from] ClaimsError),
}

impl From<TransportError> for ProviderError {
    fn from(error: TransportError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
