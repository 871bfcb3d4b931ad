//! How often somebody may try passwords.
//!
//! Only wrong ones count. There is a bucket for each network, and one for each user from each network: a stranger who knows a name uses up
//! his own, and nobody's who signs in from elsewhere. Each process has its own buckets. Their number is fixed, so that no number of names
//! takes memory; some share one, and who does with whom is another secret in each process.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::Moment;
use mlflow_api::UserName;

/// Buckets of each kind.
const BUCKETS: usize = 4_096;
/// Wrong passwords from a network at once, and the time after which there may be one more.
const NETWORK: Rate = Rate { most: 50, every: Duration::from_secs(3) };
/// The same of one user.
const USER: Rate = Rate { most: 10, every: Duration::from_secs(30) };

#[derive(Clone, Copy)]
struct Rate {
    most: u32,
    every: Duration,
}

/// How many of the attempts of a bucket are used up, and since when one of them comes back.
#[derive(Clone, Copy)]
struct Bucket {
    used: u32,
    since: Moment,
}

impl Bucket {
    fn new() -> Self {
        Self { used: 0, since: Moment::now() }
    }

    /// As it is now.
    fn refill(&mut self, rate: Rate) {
        let back = self.since.age().as_millis() / rate.every.as_millis();
        if back > 0 {
            self.used = self.used.saturating_sub(u32::try_from(back).unwrap_or(u32::MAX));
            self.since = Moment::now();
        }
    }
}

/// The attempts of all.
pub(crate) struct Attempts {
    networks: Mutex<Vec<Bucket>>,
    users: Mutex<Vec<Bucket>>,
    place: RandomState,
}

impl Default for Attempts {
    fn default() -> Self {
        let all = || Mutex::new(vec![Bucket::new(); BUCKETS]);
        Self { networks: all(), users: all(), place: RandomState::new() }
    }
}

/// One attempt, which counts unless it is [given back](Attempt::give_back).
pub(crate) struct Attempt<'a> {
    attempts: &'a Attempts,
    network: usize,
    user: usize,
}

impl Attempts {
    /// An attempt of a user from an address; `None`, if there were too many.
    pub(crate) fn take(&self, user: &UserName, from: Option<IpAddr>) -> Option<Attempt<'_>> {
        let network = from.map(network);
        let at = |hash: u64| usize::try_from(hash % BUCKETS as u64).unwrap_or_default();
        let (of_network, of_user) = (at(self.place.hash_one(network)), at(self.place.hash_one((network, user))));
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let (network, user) = (networks.get_mut(of_network)?, users.get_mut(of_user)?);
        network.refill(NETWORK);
        user.refill(USER);
        if network.used >= NETWORK.most || user.used >= USER.most {
            return None;
        }
        network.used += 1;
        user.used += 1;
        Some(Attempt { attempts: self, network: of_network, user: of_user })
    }
}

impl Attempt<'_> {
    /// It was the right password.
    pub(crate) fn give_back(self) {
        for (buckets, at) in [(&self.attempts.networks, self.network), (&self.attempts.users, self.user)] {
            if let Some(bucket) = buckets.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
                bucket.used = bucket.used.saturating_sub(1);
            }
        }
    }
}

/// The network of an address, as one that asks for addresses is given them: 256 of IPv4, and 2^64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            [first, second, third, 0].into()
        }
        IpAddr::V6(address) => {
            let [first, second, third, fourth, ..] = address.segments();
            [first, second, third, fourth, 0, 0, 0, 0].into()
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
        let clock = clock::Simulation::begin();
        let attempts = Attempts::default();
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
    fn right_passwords_count_for_nothing() {
        let attempts = Attempts::default();
        for _ in 0..100 {
            attempts.take(&user("ann"), Some(from("2001:db8::1"))).unwrap().give_back();
        }
    }

    #[test]
    fn networks_are_told_apart() {
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.255", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("::ffff:192.0.2.1", "192.0.2.7", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(network(one.parse().unwrap()) == network(other.parse().unwrap()), same, "{one} {other}");
        }
    }
}
