//! A cache of credentials. Without it, each request could require another one to obtain the
//! credentials of an instance or a role.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};

/// Remaining lifetime at which credentials are renewed.
const RENEWAL_MARGIN: Duration = Duration::from_mins(10);

/// A cache of a provider's credentials, which are requested again before they expire.
#[derive(Debug)]
pub struct CachedCredentials {
    provider: SharedCredentialsProvider,
    last: Mutex<Option<Credentials>>,
}

impl CachedCredentials {
    /// Returns a cache of the credentials of a provider.
    #[must_use]
    pub fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, last: Mutex::default() }
    }

    /// Returns credentials that do not expire soon.
    ///
    /// # Errors
    /// The provider returned none. The message says why.
    pub async fn get(&self) -> Result<Credentials, String> {
        let is_good = |credentials: &Credentials| {
            credentials.expiry().is_none_or(|expiry| expiry > SystemTime::now() + RENEWAL_MARGIN)
        };
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(credentials) = known.filter(is_good) {
            return Ok(credentials);
        }
        let new = self
            .provider
            .provide_credentials()
            .await
            .map_err(|error| format!("there are no AWS credentials to sign with: {}", chain(&error)))?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        Ok(new)
    }
}

/// Formats an error with its causes, because the outermost error is often too vague.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
