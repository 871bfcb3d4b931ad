//! Limits how often somebody may try passwords.
//!
//! Only wrong ones count. There is a bucket for each network, and one for each user from each
//! network. So a stranger who knows a name uses up his own attempts, and not those of the user from
//! elsewhere. Each process has its own buckets. Their number is fixed, so that no number of names
//! takes memory. Some share a bucket, and a secret of each process decides which.

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

/// The same of a site: somebody with many networks cannot fill the buckets of all.
const SITE: Rate = Rate { most: 200, every: Duration::from_secs(1) };

/// The attempts of all.
pub(crate) struct Attempts {
    sites: Mutex<Vec<Bucket>>,
    networks: Mutex<Vec<Bucket>>,
    users: Mutex<Vec<Bucket>>,
    place: RandomState,
}

impl Default for Attempts {
    fn default() -> Self {
        let all = || Mutex::new(vec![Bucket::new(); BUCKETS]);
        Self { sites: all(), networks: all(), users: all(), place: RandomState::new() }
    }
}

/// One attempt. It counts unless it is [given back](Attempt::give_back), even if its caller goes
/// away before the end.
pub(crate) struct Attempt<'a> {
    taken: Vec<(&'a Mutex<Vec<Bucket>>, usize)>,
}

impl Attempts {
    /// An attempt of a user from an address; `None`, if there were too many.
    pub(crate) fn take(&self, user: &UserName, from: Option<IpAddr>) -> Option<Attempt<'_>> {
        let networks = from.map(networks);
        let own = networks.map(|[own, _]| own);
        let mut wanted = vec![(&self.networks, NETWORK, self.place.hash_one(own))];
        wanted.push((&self.users, USER, self.place.hash_one((own, user))));
        wanted.extend(networks.map(|[_, site]| (&self.sites, SITE, self.place.hash_one(site))));
        let mut taken = Attempt { taken: Vec::with_capacity(wanted.len()) };
        for (buckets, rate, hash) in wanted {
            let place = usize::try_from(hash % BUCKETS as u64).unwrap_or_default();
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
    let has_room = bucket.used < rate.most;
    bucket.used += u32::from(has_room);
    has_room
}

impl Attempt<'_> {
    /// It does not count: the password was right, or nobody found out.
    pub(crate) fn give_back(self) {
        for (buckets, place) in self.taken {
            if let Some(bucket) = buckets.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place) {
                bucket.used = bucket.used.saturating_sub(1);
            }
        }
    }
}

/// The network of an address, and the most that a site is given: 256 addresses of IPv4, which are
/// both; 2^64 and 2^80 of IPv6.
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
    fn a_site_of_many_networks_leaves_attempts_to_others() {
        let _clock = clock::Simulation::begin();
        let attempts = Attempts::default();
        let taken = (0..10_000_u32).filter(|number| {
            let address = format!("2001:db8:0:{:x}::1", number % 0x1_0000);
            attempts.take(&user(&format!("user {number}")), Some(from(&address))).is_some()
        });
        assert_eq!(taken.count(), 200);
        assert!(attempts.take(&user("ann"), Some(from("2001:db8:1::1"))).is_some());
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
            assert_eq!(networks(one.parse().unwrap())[0] == networks(other.parse().unwrap())[0], same, "{one} {other}");
        }
    }
}
