//! What a process remembers for the OAuth endpoints: limits, the configuration, and the keys of
//! issuers.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use identity_providers::{Configuration, HttpsTransport, Issuers};
use mlflow_api::{Error, Result};
use permissions::{Rate, RateBuckets, networks};
use runtime::clock::Moment;
use tokio::sync::Mutex;

/// Logins with a code that a network can begin.
const NETWORK_RATE: Rate = Rate { burst: 20, refill_interval: Duration::from_secs(6) };
/// Logins with a code that a site can begin, so that many networks of one site do not exhaust the
/// buckets of others.
const SITE_RATE: Rate = Rate { burst: 200, refill_interval: Duration::from_secs(1) };
/// Wrong codes of a user.
const CODE_RATE: Rate = Rate { burst: 5, refill_interval: Duration::from_secs(12) };
/// How long the configuration is cached.
const CONFIGURATION_AGE: Duration = Duration::from_mins(1);

/// The configuration, and when it was read.
type CachedConfiguration = Option<(Moment, Option<Arc<Configuration>>)>;

/// The state of a process.
pub(crate) struct OauthState {
    networks: RateBuckets,
    sites: RateBuckets,
    /// Limit of the wrong codes that a user enters.
    pub(crate) wrong_codes: RateBuckets,
    configuration: Mutex<CachedConfiguration>,
    issuers: OnceLock<Issuers>,
}

impl Default for OauthState {
    fn default() -> Self {
        Self {
            networks: RateBuckets::new(NETWORK_RATE),
            sites: RateBuckets::new(SITE_RATE),
            wrong_codes: RateBuckets::new(CODE_RATE),
            configuration: Mutex::default(),
            issuers: OnceLock::new(),
        }
    }
}

impl OauthState {
    /// Takes an attempt to begin a login from an address. Returns `false` if one of the limits is
    /// exhausted.
    pub(crate) fn may_begin_login(&self, from: Option<IpAddr>) -> bool {
        let networks = from.map(networks);
        let own = self.networks.take(networks.map(|[own, _]| own));
        let site = self.sites.take(networks.map(|[_, site]| site));
        own.is_some() && site.is_some()
    }

    /// Returns the configuration of single sign-on, as it was at most a minute ago. `read` reads it
    /// from the table. Concurrent requests share a read.
    ///
    /// # Errors
    /// Returns the error of `read`.
    pub(crate) async fn configuration(
        &self,
        read: impl Future<Output = Result<Option<Configuration>>>,
    ) -> Result<Option<Arc<Configuration>>> {
        let mut cached = self.configuration.lock().await;
        if let Some((read_at, configuration)) = &*cached
            && read_at.age() < CONFIGURATION_AGE
        {
            return Ok(configuration.clone());
        }
        let now = Moment::now();
        let configuration = read.await?.map(Arc::new);
        *cached = Some((now, configuration.clone()));
        Ok(configuration)
    }

    /// Returns the keys of the issuers.
    ///
    /// # Errors
    /// Returns an internal error if the root certificates cannot be read.
    pub(crate) fn issuers(&self) -> Result<&Issuers> {
        if let Some(issuers) = self.issuers.get() {
            return Ok(issuers);
        }
        let transport = HttpsTransport::new().map_err(Error::internal)?;
        Ok(self.issuers.get_or_init(|| Issuers::new(Arc::new(transport))))
    }
}

#[cfg(test)]
mod tests {
    use runtime::clock::SimulatedClock;

    use super::*;

    #[test]
    fn a_network_begins_a_limited_number_of_logins() {
        let clock = SimulatedClock::begin();
        let state = OauthState::default();
        let begun = |address: &str, times: usize| {
            (0..times).filter(|_| state.may_begin_login(Some(address.parse().unwrap()))).count()
        };
        assert_eq!(begun("192.0.2.1", 30), 20);
        assert_eq!(begun("192.0.2.200", 1), 0);
        assert_eq!(begun("198.51.100.1", 1), 1);
        drop(clock);
    }

    #[tokio::test]
    async fn the_configuration_is_read_once_while_it_is_cached() {
        let state = OauthState::default();
        let configuration = serde_json::from_str(r#"{"origins": ["https://a"]}"#).unwrap();
        let first = state.configuration(async { Ok(Some(configuration)) }).await.unwrap();
        let second = state.configuration(async { panic!("it is cached") }).await.unwrap();
        assert_eq!((first.is_some(), &second), (true, &first));
    }
}
