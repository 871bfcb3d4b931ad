//! A per-process cache of the discovery documents and keys of issuers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Moment;

use crate::claims::Claims;
use crate::discovery::Discovery;
use crate::jwt::{JwtError, JwtExpectations, JwtKind, verify};
use crate::keys::KeySet;
use crate::provider_error::ProviderError;
use crate::transport::{ProviderRequest, ProviderResponse, ProviderTransport};

/// How long discovery documents and keys are used before they are fetched again.
const FRESH: Duration = Duration::from_hours(1);
/// How long they are used while the issuer cannot be reached.
const STALE: Duration = Duration::from_hours(24);
/// Maximum number of issuers in the cache. It is cleared when it is full, which takes more
/// configurations than one.
const CAPACITY: usize = 200;

/// How often a token or a visitor may cause requests to an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchLimit {
    /// For tokens that anyone can send: after a failed fetch, or for an unknown key, the next one
    /// is at least a minute later.
    PerMinute,
    /// For sign-ins and renewals, whose tokens come from the provider itself: 5 s.
    PerFiveSeconds,
}

impl FetchLimit {
    fn interval(self) -> Duration {
        match self {
            Self::PerMinute => Duration::from_mins(1),
            Self::PerFiveSeconds => Duration::from_secs(5),
        }
    }
}

/// A per-process cache of the discovery documents and keys of issuers. Only issuers of the
/// configuration may be passed to it: it sends requests to them.
#[derive(Debug)]
pub struct Issuers {
    transport: Arc<dyn ProviderTransport>,
    cache: Mutex<BTreeMap<String, Arc<Issuer>>>,
}

/// The cache of one issuer.
#[derive(Debug, Default)]
struct Issuer {
    discovery: CachedDocument<Discovery>,
    keys: CachedDocument<KeySet>,
}

/// A document that is fetched from time to time.
struct CachedDocument<T> {
    state: Mutex<DocumentState<T>>,
    /// Held during a fetch, so that concurrent requests share it.
    fetching: tokio::sync::Mutex<()>,
}

struct DocumentState<T> {
    current: Option<(Arc<T>, Moment)>,
    /// When the document was last requested, and the error if this failed.
    attempt: Option<(Moment, Option<ProviderError>)>,
}

/// Which document suffices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    /// A cached one, unless it is too old.
    Cached,
    /// A newer one than the one whose keys did not suffice.
    Newer,
}

impl Issuers {
    /// Returns an empty cache.
    #[must_use]
    pub fn new(transport: Arc<dyn ProviderTransport>) -> Self {
        Self { transport, cache: Mutex::default() }
    }

    /// Returns the discovery document of an issuer, from the cache if it is younger than an hour.
    /// While the issuer cannot be reached, a document of up to a day is used. Sends at most one
    /// request.
    ///
    /// # Errors
    /// [`ProviderError::Unavailable`] or [`ProviderError::Misconfigured`].
    pub async fn discovery(&self, issuer: &str, limit: FetchLimit) -> Result<Arc<Discovery>, ProviderError> {
        let cached = self.issuer(issuer);
        let fetch = async || {
            let url = Discovery::url(issuer)?;
            let shown = url.to_string();
            let response = self.transport.send(ProviderRequest::get(url)).await?;
            Discovery::parse(issuer, &successful(&shown, &response)?.body)
        };
        cached.discovery.get(Required::Cached, limit, fetch).await
    }

    /// Returns the keys of an issuer, as for [`Self::discovery`]. Sends at most two requests.
    ///
    /// # Errors
    /// [`ProviderError::Unavailable`] or [`ProviderError::Misconfigured`].
    pub async fn keys(&self, issuer: &str, limit: FetchLimit) -> Result<Arc<KeySet>, ProviderError> {
        self.keys_as(issuer, Required::Cached, limit).await
    }

    async fn keys_as(&self, issuer: &str, required: Required, limit: FetchLimit) -> Result<Arc<KeySet>, ProviderError> {
        let discovery = self.discovery(issuer, limit).await?;
        let fetch = async || {
            let url = discovery.jwks_uri.clone();
            let response = self.transport.send(ProviderRequest::get(url)).await?;
            let body = &successful(discovery.jwks_uri.as_str(), &response)?.body;
            let keys = serde_json::from_slice(body).ok().and_then(|keys| KeySet::parse(&keys));
            keys.ok_or_else(|| ProviderError::Misconfigured(format!("{} is not a JWK set", discovery.jwks_uri)))
        };
        self.issuer(issuer).keys.get(required, limit, fetch).await
    }

    /// Verifies a JWT of a configured issuer with keys that the issuer publishes. If it is signed
    /// with an unknown key, the keys are fetched again, as often as the limit allows.
    ///
    /// # Errors
    /// [`ProviderError::Token`] if the token is not valid, otherwise as for [`Self::keys`].
    pub async fn verify(
        &self,
        issuer: &str,
        token: &str,
        (audience, kind): (&str, JwtKind<'_>),
        limit: FetchLimit,
    ) -> Result<Claims, ProviderError> {
        let discovery = self.discovery(issuer, limit).await?;
        let now = runtime::clock::now_ms().div_euclid(1000);
        let expected = JwtExpectations { issuer: &discovery.issuer, audience, kind, now };
        let keys = self.keys(issuer, limit).await?;
        match verify(token, &keys, &expected) {
            Err(JwtError::UnknownKey) => {
                let keys = self.keys_as(issuer, Required::Newer, limit).await?;
                Ok(verify(token, &keys, &expected)?)
            }
            other => Ok(other?),
        }
    }

    /// Returns the transport, for requests to endpoints that a discovery document names.
    pub(crate) fn transport(&self) -> &dyn ProviderTransport {
        &*self.transport
    }

    fn issuer(&self, issuer: &str) -> Arc<Issuer> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache.get(issuer) {
            return Arc::clone(found);
        }
        if cache.len() >= CAPACITY {
            cache.clear();
        }
        Arc::clone(cache.entry(issuer.to_owned()).or_default())
    }
}

impl<T> CachedDocument<T> {
    async fn get(
        &self,
        required: Required,
        limit: FetchLimit,
        fetch: impl AsyncFnOnce() -> Result<T, ProviderError>,
    ) -> Result<Arc<T>, ProviderError> {
        if required == Required::Cached
            && let Some(fresh) = self.younger_than(FRESH)
        {
            return Ok(fresh);
        }
        let begin = Moment::now();
        let _fetching = self.fetching.lock().await;
        if let Some(answer) = self.without_fetch(required, limit, begin) {
            return answer;
        }
        self.set_attempt(None);
        let fetched = fetch().await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match fetched {
            Ok(document) => {
                let document = Arc::new(document);
                state.current = Some((Arc::clone(&document), Moment::now()));
                Ok(document)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot fetch the document of an issuer");
                state.attempt = Some((Moment::now(), Some(error.clone())));
                drop(state);
                self.younger_than(STALE).ok_or(error)
            }
        }
    }

    /// Returns the answer if the document is not to be fetched now: another request has just fetched
    /// it, or it was requested too recently.
    fn without_fetch(
        &self,
        required: Required,
        limit: FetchLimit,
        begin: Moment,
    ) -> Option<Result<Arc<T>, ProviderError>> {
        if required == Required::Cached
            && let Some(fresh) = self.younger_than(FRESH)
        {
            return Some(Ok(fresh));
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, error) = state.attempt.as_ref()?;
        // An attempt that ended after this request began serves it, too.
        if attempt.age() >= limit.interval().max(begin.age()) {
            return None;
        }
        let error = error.clone();
        drop(state);
        let unavailable = || ProviderError::Unavailable("it was requested a moment ago".to_owned());
        Some(self.younger_than(STALE).ok_or_else(|| error.unwrap_or_else(unavailable)))
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<T>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (document, fetched) = state.current.as_ref()?;
        (fetched.age() < age).then(|| Arc::clone(document))
    }

    fn set_attempt(&self, error: Option<ProviderError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.attempt = Some((Moment::now(), error));
    }
}

impl<T> Default for CachedDocument<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(DocumentState { current: None, attempt: None }),
            fetching: tokio::sync::Mutex::default(),
        }
    }
}

impl<T> fmt::Debug for CachedDocument<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CachedDocument(…)")
    }
}

/// Checks the status of a response.
pub(crate) fn successful<'a>(url: &str, response: &'a ProviderResponse) -> Result<&'a ProviderResponse, ProviderError> {
    match response.status {
        200 => Ok(response),
        status @ (429 | 500..) => Err(ProviderError::Unavailable(format!("{url} responded with status {status}"))),
        status => Err(ProviderError::Misconfigured(format!("{url} responded with status {status}; check the issuer"))),
    }
}

#[cfg(test)]
mod tests;
