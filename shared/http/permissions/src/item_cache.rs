//! A process's short-lived cache of users and their grants.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Moment;
use table::{Item, TableKey};

/// How long a process relies on items that it has read. The time is measured from before the read
/// was sent. A request that revokes something waits this long before it responds, so that no
/// process relies on the earlier state afterwards (`docs/adr/0004-leases.md`). All processes that
/// use these tables have the same lease.
pub const LEASE: Duration = Duration::from_millis(300);

/// Number of items from which on stale items are evicted before new ones are added. The cache never
/// holds more than `MAX_ITEMS` items.
const EVICTION_THRESHOLD: usize = 1_000;
const MAX_ITEMS: usize = 10_000;

/// The result of reading a key.
#[derive(Clone, Debug)]
pub(crate) enum CachedItem {
    Item(Item),
    Missing,
}

impl CachedItem {
    pub(crate) fn of(item: Option<&Item>) -> Self {
        item.cloned().map_or(Self::Missing, Self::Item)
    }
}

/// Results of reads, each with the moment before the read was sent.
#[derive(Default)]
pub(crate) struct ItemCache(Mutex<HashMap<TableKey, (Moment, CachedItem)>>);

impl ItemCache {
    /// Returns the result for a key that was read less than [`LEASE`] ago.
    pub(crate) fn get(&self, key: &TableKey) -> Option<CachedItem> {
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, seen) = items.get(key)?;
        (read_at.age() < LEASE).then(|| seen.clone())
    }

    /// Caches the results of reads that were sent after this moment.
    pub(crate) fn insert(&self, read_at: Moment, read: impl Iterator<Item = (TableKey, CachedItem)>) {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() >= EVICTION_THRESHOLD {
            items.retain(|_, (read_at, _)| read_at.age() < LEASE);
        }
        for (key, seen) in read {
            if items.len() < MAX_ITEMS || items.contains_key(&key) {
                items.insert(key, (read_at, seen));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use key_schema::Ordinal;
    use key_schema::access_rows::Role;

    use super::*;

    #[tokio::test]
    async fn what_was_read_counts_for_a_moment() {
        let clock = runtime::clock::SimulatedClock::begin();
        let recent = ItemCache::default();
        let key = |role| TableKey::here(Role::key(&Ordinal(role)));
        recent.insert(
            Moment::now(),
            [(key(1), CachedItem::Item(Item::new(key(1).key))), (key(2), CachedItem::Missing)].into_iter(),
        );
        assert!(matches!(
            (recent.get(&key(1)), recent.get(&key(2))),
            (Some(CachedItem::Item(_)), Some(CachedItem::Missing))
        ));
        assert!(recent.get(&key(3)).is_none());
        tokio::select! {
            () = clock.drive() => {}
            () = runtime::clock::sleep(LEASE) => {}
        }
        assert!(recent.get(&key(1)).is_none() && recent.get(&key(2)).is_none());
    }
}
