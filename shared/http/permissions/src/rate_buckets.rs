//! Rate limits with a fixed number of buckets, so that memory use does not grow with the number of
//! keys. Some keys share a bucket; a per-process secret decides which. Each process has its own
//! buckets.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Moment;

/// Number of buckets of a limit.
const BUCKET_COUNT: usize = 4_096;

/// A limit: attempts in a burst, and the interval after which one more is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Number of attempts in a burst.
    pub burst: u32,
    /// Interval after which one more attempt is allowed.
    pub refill_interval: Duration,
}

/// The number of used attempts in a bucket, and the time of its last refill.
#[derive(Clone, Copy)]
struct Bucket {
    used: u32,
    since: Moment,
}

/// The buckets of one limit.
pub struct RateBuckets {
    rate: Rate,
    buckets: Mutex<Vec<Bucket>>,
    hasher: RandomState,
}

/// An attempt that was taken from a bucket. It counts unless it is [given
/// back](TakenAttempt::give_back), even if the client disconnects before the outcome is known.
#[must_use]
pub struct TakenAttempt<'a> {
    buckets: &'a RateBuckets,
    place: usize,
}

impl RateBuckets {
    /// Creates full buckets. Memory for them is allocated when the first attempt is taken.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::default(), hasher: RandomState::new() }
    }

    /// Takes an attempt for a key. Returns `None` if the limit is exhausted.
    pub fn take(&self, key: impl Hash) -> Option<TakenAttempt<'_>> {
        let place = usize::try_from(self.hasher.hash_one(key) % BUCKET_COUNT as u64).unwrap_or_default();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.is_empty() {
            buckets.resize(BUCKET_COUNT, Bucket { used: 0, since: Moment::now() });
        }
        let bucket = buckets.get_mut(place)?;
        bucket.refill(self.rate);
        if bucket.used >= self.rate.burst {
            return None;
        }
        bucket.used += 1;
        Some(TakenAttempt { buckets: self, place })
    }
}

impl TakenAttempt<'_> {
    /// Returns the attempt to its bucket.
    pub fn give_back(self) {
        let mut buckets = self.buckets.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(self.place) {
            bucket.used = bucket.used.saturating_sub(1);
        }
    }
}

impl Bucket {
    /// Refills the bucket for the time that has passed.
    fn refill(&mut self, rate: Rate) {
        let back = self.since.age().as_millis() / rate.refill_interval.as_millis().max(1);
        if back > 0 {
            self.used = self.used.saturating_sub(u32::try_from(back).unwrap_or(u32::MAX));
            self.since = Moment::now();
        }
    }
}

/// Returns the network of an address, and its site: the largest block of addresses that a site is
/// usually assigned. For IPv4, both are blocks of 256 addresses. For IPv6, the network has 2^64
/// addresses and the site 2^80.
#[must_use]
pub fn networks(address: IpAddr) -> [IpAddr; 2] {
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
