//! Rate limits for password attempts.
//!
//! Only wrong passwords count. There is a bucket for each network, and one for each user and
//! network. An attacker who knows a user's name therefore uses up the attempts of the attacker's
//! own network, and not those of the user on another network. Each process has its own buckets.
//! Their number is fixed, so that memory use does not grow with the number of names. Some networks
//! and users share a bucket; a per-process secret decides which.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mlflow_api::UserName;
use runtime::clock::Moment;

/// Number of buckets of each kind.
const BUCKET_COUNT: usize = 4_096;
/// Limit for a network: wrong passwords in a burst, and the interval after which one more is
/// allowed.
const NETWORK_RATE: Rate = Rate { burst: 50, refill_interval: Duration::from_secs(3) };
/// Limit for one user from one network.
const USER_RATE: Rate = Rate { burst: 10, refill_interval: Duration::from_secs(30) };

#[derive(Clone, Copy)]
struct Rate {
    burst: u32,
    refill_interval: Duration,
}

/// The number of used attempts in a bucket, and the time of its last refill.
#[derive(Clone, Copy)]
struct Bucket {
    used: u32,
    since: Moment,
}

impl Bucket {
    fn new() -> Self {
        Self { used: 0, since: Moment::now() }
    }

    /// Refills the bucket for the time that has passed.
    fn refill(&mut self, rate: Rate) {
        let back = self.since.age().as_millis() / rate.refill_interval.as_millis();
        if back > 0 {
            self.used = self.used.saturating_sub(u32::try_from(back).unwrap_or(u32::MAX));
            self.since = Moment::now();
        }
    }
}

/// Limit for a site, which is a larger block of addresses than a network. It keeps an attacker who
/// has many networks of one site from exhausting the buckets of all networks.
const SITE_RATE: Rate = Rate { burst: 200, refill_interval: Duration::from_secs(1) };

/// The buckets of all sites, networks and users.
pub(crate) struct PasswordAttempts {
    sites: Mutex<Vec<Bucket>>,
    networks: Mutex<Vec<Bucket>>,
    users: Mutex<Vec<Bucket>>,
    bucket_hasher: RandomState,
}

impl Default for PasswordAttempts {
    fn default() -> Self {
        let all = || Mutex::new(vec![Bucket::new(); BUCKET_COUNT]);
        Self { sites: all(), networks: all(), users: all(), bucket_hasher: RandomState::new() }
    }
}

/// An attempt that has been taken from the buckets. It counts unless it is [given
/// back](PasswordAttempt::give_back), even if the client disconnects before the outcome is known.
pub(crate) struct PasswordAttempt<'a> {
    taken: Vec<(&'a Mutex<Vec<Bucket>>, usize)>,
}

impl PasswordAttempts {
    /// Takes an attempt for a user from an address. Returns `None` if one of the limits is
    /// exhausted.
    pub(crate) fn take(&self, user: &UserName, from: Option<IpAddr>) -> Option<PasswordAttempt<'_>> {
        let networks = from.map(networks);
        let own = networks.map(|[own, _]| own);
        let mut wanted = vec![(&self.networks, NETWORK_RATE, self.bucket_hasher.hash_one(own))];
        wanted.push((&self.users, USER_RATE, self.bucket_hasher.hash_one((own, user))));
        wanted.extend(networks.map(|[_, site]| (&self.sites, SITE_RATE, self.bucket_hasher.hash_one(site))));
        let mut taken = PasswordAttempt { taken: Vec::with_capacity(wanted.len()) };
        for (buckets, rate, hash) in wanted {
            let place = usize::try_from(hash % BUCKET_COUNT as u64).unwrap_or_default();
            if !take(buckets, place, rate) {
                taken.give_back();
                return None;
            }
            taken.taken.push((buckets, place));
        }
        Some(taken)
    }
}

fn take(buckets: &Mutex<Vec<Bucket>>, place: usize, rate: Rate) -> bool {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(bucket) = buckets.get_mut(place) else { return false };
    bucket.refill(rate);
    let has_room = bucket.used < rate.burst;
    bucket.used += u32::from(has_room);
    has_room
}

impl PasswordAttempt<'_> {
    /// Returns the attempt to the buckets, because the password was right or was not checked.
    pub(crate) fn give_back(self) {
        for (buckets, place) in self.taken {
            if let Some(bucket) = buckets.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place) {
                bucket.used = bucket.used.saturating_sub(1);
            }
        }
    }
}

/// Returns the network of an address, and its site: the largest block of addresses that a site is
/// usually assigned. For IPv4, both are blocks of 256 addresses. For IPv6, the network has 2^64
/// addresses and the site 2^80.
fn networks(address: IpAddr) -> [IpAddr; 2] {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            [[first, second, third, 0].into(); 2]
        }
        IpAddr::V6(address) => {
            let [first, second, third, fourth, ..] = address.segments();
            [[first, second, third, fourth, 0, 0, 0, 0].into(), [first, second, third, 0, 0, 0, 0, 0].into()]
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

    #[test]
    fn networks_are_told_apart() {
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.255", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("::ffff:192.0.2.1", "192.0.2.7", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(networks(one.parse().unwrap())[0] == networks(other.parse().unwrap())[0], same, "{one} {other}");
        }
    }
}
