//! Failures of sign-ins at providers.

use http::StatusCode;
use identity_providers::{ClaimsError, Provider, ProviderError};
use mlflow_api::Error;
use secrets::ClientSecretError;

/// Why a sign-in fails.
#[derive(Debug)]
pub(crate) enum SignInFailure {
    /// A sentence for the sign-in page, with the status of the response.
    Sentence(StatusCode, String),
    /// An error of the server, such as an unavailable table.
    Error(Error),
}

impl SignInFailure {
    /// Returns the failure that the provider's error causes, and logs it.
    pub(crate) fn of_provider(provider: &Provider, error: &ProviderError) -> Self {
        let status = match error {
            ProviderError::Unavailable(_) | ProviderError::Misconfigured(_) => StatusCode::SERVICE_UNAVAILABLE,
            ProviderError::Refused(_) | ProviderError::Token(_) => StatusCode::UNAUTHORIZED,
            ProviderError::Claims(_) => StatusCode::FORBIDDEN,
        };
        tracing::warn!(target: "audit", event = "not signed in", provider = provider.name, reason = %error);
        Self::Sentence(status, format!("Signing in with {} failed: {error}.", provider.title))
    }

    /// Returns the failure that the claims of a person cause, and logs it.
    pub(crate) fn of_claims(provider: &Provider, error: &ClaimsError) -> Self {
        Self::of_provider(provider, &ProviderError::Claims(error.clone()))
    }

    /// Returns the failure that a missing or unreadable client secret causes. The page does not show
    /// the reason, because it contains paths of the server. It is in the log instead.
    pub(crate) fn of_secret(provider: &Provider, error: &ClientSecretError) -> Self {
        tracing::error!(provider = provider.name, %error, "cannot read the client secret of an identity provider");
        let text = format!(
            "Signing in with {} failed: the server cannot read its client secret. Its operator finds the reason in the log.",
            provider.title
        );
        Self::Sentence(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// Returns a failure that refuses the person with a sentence.
    pub(crate) fn forbidden(text: impl Into<String>) -> Self {
        Self::Sentence(StatusCode::FORBIDDEN, text.into())
    }
}

impl From<Error> for SignInFailure {
    /// Errors that the person or an administrator can fix become sentences.
    fn from(error: Error) -> Self {
        if error.code.http_status() == 400 {
            return Self::forbidden(error.message);
        }
        Self::Error(error)
    }
}
