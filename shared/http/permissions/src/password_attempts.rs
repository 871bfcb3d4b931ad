//! Rate limits for password attempts.
//!
//! Only wrong passwords count. There is a bucket for each network, and one for each user and
//! network. An attacker who knows a user's name therefore uses up the attempts of the attacker's
//! own network, and not those of the user on another network. Each process has its own buckets.
//! Their number is fixed, so that memory use does not grow with the number of names. Some networks
//! and users share a bucket; a per-process secret decides which.

use std::net::IpAddr;
use std::time::Duration;

use mlflow_api::UserName;

use crate::rate_buckets::{Rate, RateBuckets, TakenAttempt, networks};

/// Limit for a network: wrong passwords in a burst, and the interval after which one more is
/// allowed.
const NETWORK_RATE: Rate = Rate { burst: 50, refill_interval: Duration::from_secs(3) };
/// Limit for one user from one network.
const USER_RATE: Rate = Rate { burst: 10, refill_interval: Duration::from_secs(30) };
/// Limit for a site, which is a larger block of addresses than a network. It keeps an attacker who
/// has many networks of one site from exhausting the buckets of all networks.
const SITE_RATE: Rate = Rate { burst: 200, refill_interval: Duration::from_secs(1) };

/// The buckets of all sites, networks and users.
pub(crate) struct PasswordAttempts {
    sites: RateBuckets,
    networks: RateBuckets,
    users: RateBuckets,
}

impl Default for PasswordAttempts {
    fn default() -> Self {
        let [sites, networks, users] = [SITE_RATE, NETWORK_RATE, USER_RATE].map(RateBuckets::new);
        Self { sites, networks, users }
    }
}

/// An attempt that has been taken from the buckets. It counts unless it is [given
/// back](PasswordAttempt::give_back), even if the client disconnects before the outcome is known.
pub(crate) struct PasswordAttempt<'a> {
    taken: Vec<TakenAttempt<'a>>,
}

impl PasswordAttempts {
    /// Takes an attempt for a user from an address. Returns `None` if one of the limits is
    /// exhausted.
    pub(crate) fn take(&self, user: &UserName, from: Option<IpAddr>) -> Option<PasswordAttempt<'_>> {
        let networks = from.map(networks);
        let own = networks.map(|[own, _]| own);
        let mut attempt = PasswordAttempt { taken: Vec::with_capacity(3) };
        let has_taken = attempt.add(self.networks.take(own))
            && attempt.add(self.users.take((own, user)))
            && networks.is_none_or(|[_, site]| attempt.add(self.sites.take(site)));
        if has_taken {
            return Some(attempt);
        }
        attempt.give_back();
        None
    }
}

impl<'a> PasswordAttempt<'a> {
    fn add(&mut self, taken: Option<TakenAttempt<'a>>) -> bool {
        let is_taken = taken.is_some();
        self.taken.extend(taken);
        is_taken
    }

    /// Returns the attempt to the buckets, because the password was right or was not checked.
    pub(crate) fn give_back(self) {
        for taken in self.taken {
            taken.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        UserName::named(name).unwrap()
    }

    fn from(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn a_stranger_uses_up_his_own_attempts() {
        let clock = runtime::clock::SimulatedClock::begin();
        let attempts = PasswordAttempts::default();
        let taken = |name: &str, address: &str, times: usize| {
            (0..times).filter(|_| attempts.take(&user(name), Some(from(address))).is_some()).count()
        };
        assert_eq!(taken("ann", "192.0.2.1", 100), 10);
        assert_eq!(taken("ann", "192.0.2.200", 1), 0);
        assert_eq!(taken("ann", "198.51.100.1", 1), 1);
        let names: usize = (0..100).map(|number| taken(&format!("user {number}"), "192.0.2.1", 1)).sum();
        assert_eq!(names, 40);
        drop(clock);
    }

    #[test]
    fn a_site_of_many_networks_leaves_attempts_to_others() {
        let _clock = runtime::clock::SimulatedClock::begin();
        let attempts = PasswordAttempts::default();
        let taken = (0..10_000_u32).filter(|number| {
            let address = format!("2001:db8:0:{:x}::1", number % 0x1_0000);
            attempts.take(&user(&format!("user {number}")), Some(from(&address))).is_some()
        });
        assert_eq!(taken.count(), 200);
        assert!(attempts.take(&user("ann"), Some(from("2001:db8:1::1"))).is_some());
    }

    #[test]
    fn right_passwords_count_for_nothing() {
        let attempts = PasswordAttempts::default();
        for _ in 0..100 {
            attempts.take(&user("ann"), Some(from("2001:db8::1"))).unwrap().give_back();
        }
    }
}
