//! Per-process services of single sign-on: the source of client secrets, and the caches of client
//! secrets, of the configuration, and of the providers' documents and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use identity_providers::{ClientSecret, Configuration, HttpsTransport, Issuers};
use runtime::clock::Moment;
use secrets::{ClientSecretError, ClientSecrets};

/// How long the configuration is cached. A change is in effect in every process after this time.
const CONFIGURATION_LIFETIME: Duration = Duration::from_mins(1);
/// How long a client secret is cached, unless the provider refuses it.
const SECRET_LIFETIME: Duration = Duration::from_mins(5);

/// The services for single sign-on of a process.
#[derive(Clone)]
pub struct SignOnServices(Arc<Services>);

struct Services {
    secrets: Arc<ClientSecrets>,
    issuers: OnceLock<Result<Arc<Issuers>, String>>,
    configuration: Mutex<Option<(Moment, Arc<Configuration>)>>,
    /// Client secrets by the name of their provider.
    cached_secrets: Mutex<BTreeMap<String, (Moment, ClientSecret)>>,
}

impl SignOnServices {
    /// Returns services with these client secrets. Opens no connection.
    #[must_use]
    pub fn new(secrets: Arc<ClientSecrets>) -> Self {
        Self(Arc::new(Services {
            secrets,
            issuers: OnceLock::new(),
            configuration: Mutex::default(),
            cached_secrets: Mutex::default(),
        }))
    }

    /// Returns the cache of discovery documents and keys, which sends requests to providers.
    ///
    /// # Errors
    /// The root certificates of this machine cannot be read.
    pub(crate) fn issuers(&self) -> Result<&Arc<Issuers>, String> {
        let new = || Ok(Arc::new(Issuers::new(Arc::new(HttpsTransport::new()?))));
        self.0.issuers.get_or_init(new).as_ref().map_err(Clone::clone)
    }

    /// Returns the cached configuration, unless it is too old.
    pub(crate) fn cached_configuration(&self) -> Option<Arc<Configuration>> {
        let cached = lock(&self.0.configuration);
        let (read, configuration) = cached.as_ref()?;
        (read.age() < CONFIGURATION_LIFETIME).then(|| Arc::clone(configuration))
    }

    /// Caches the configuration. Client secrets of providers that it does not contain are removed
    /// from the cache.
    pub(crate) fn cache_configuration(&self, configuration: Arc<Configuration>) {
        let is_known = |name: &String| configuration.providers.iter().any(|provider| provider.name == *name);
        lock(&self.0.cached_secrets).retain(|name, _| is_known(name));
        *lock(&self.0.configuration) = Some((Moment::now(), configuration));
    }

    /// Returns the client secret of a provider, which is cached for up to five minutes. Takes at
    /// most one request to Parameter Store, or reads a file.
    ///
    /// # Errors
    /// The secret is missing or malformed, or cannot be read.
    pub(crate) async fn client_secret(&self, provider: &str) -> Result<ClientSecret, ClientSecretError> {
        if let Some((read, secret)) = lock(&self.0.cached_secrets).get(provider)
            && read.age() < SECRET_LIFETIME
        {
            return Ok(secret.clone());
        }
        let malformed = || ClientSecretError::Malformed { place: provider.to_owned() };
        let read = self.0.secrets.read(provider).await?;
        let text = std::str::from_utf8(read.expose()).map_err(|_| malformed())?;
        let secret = ClientSecret::new(text).map_err(|_| malformed())?;
        lock(&self.0.cached_secrets).insert(provider.to_owned(), (Moment::now(), secret.clone()));
        Ok(secret)
    }

    /// Removes a client secret from the cache, because the provider has refused it: the operator may
    /// have stored a new one.
    pub(crate) fn forget_client_secret(&self, provider: &str) {
        lock(&self.0.cached_secrets).remove(provider);
    }
}

impl Default for SignOnServices {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl fmt::Debug for SignOnServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SignOnServices").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
