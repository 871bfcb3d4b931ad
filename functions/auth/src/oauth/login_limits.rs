//! How many logins of clients a network can begin, and how many wrong codes a user can enter. A
//! process counts them in memory, so the limits apply to each process.

use std::net::IpAddr;
use std::time::Duration;

use permissions::{Rate, RateBuckets, networks};

/// Logins with a code that a network can begin.
const NETWORK_RATE: Rate = Rate { burst: 20, refill_interval: Duration::from_secs(6) };
/// Logins with a code that a site can begin, so that many networks of one site do not exhaust the
/// buckets of others.
const SITE_RATE: Rate = Rate { burst: 200, refill_interval: Duration::from_secs(1) };
/// Wrong codes of a user.
const CODE_RATE: Rate = Rate { burst: 5, refill_interval: Duration::from_secs(12) };

/// The limits of a process.
pub(crate) struct LoginLimits {
    networks: RateBuckets,
    sites: RateBuckets,
    /// Limit of the wrong codes that a user enters.
    pub(crate) wrong_codes: RateBuckets,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self {
            networks: RateBuckets::new(NETWORK_RATE),
            sites: RateBuckets::new(SITE_RATE),
            wrong_codes: RateBuckets::new(CODE_RATE),
        }
    }
}

impl LoginLimits {
    /// Takes an attempt to begin a login from an address. Returns `false` if one of the limits is
    /// exhausted.
    pub(crate) fn may_begin_login(&self, from: Option<IpAddr>) -> bool {
        let networks = from.map(networks);
        let own = self.networks.take(networks.map(|[own, _]| own));
        let site = self.sites.take(networks.map(|[_, site]| site));
        own.is_some() && site.is_some()
    }
}

#[cfg(test)]
mod tests {
    use runtime::clock::SimulatedClock;

    use super::*;

    #[test]
    fn a_network_begins_a_limited_number_of_logins() {
        let clock = SimulatedClock::begin();
        let limits = LoginLimits::default();
        let begun = |address: &str, times: usize| {
            (0..times).filter(|_| limits.may_begin_login(Some(address.parse().unwrap()))).count()
        };
        assert_eq!(begun("192.0.2.1", 30), 20);
        assert_eq!(begun("192.0.2.200", 1), 0);
        assert_eq!(begun("198.51.100.1", 1), 1);
        drop(clock);
    }
}
