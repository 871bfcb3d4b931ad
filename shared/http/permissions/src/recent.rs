//! A process's short-lived cache of users and their grants.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::Moment;
use table::{Item, TableKey};

/// For how long a process relies on items that it has read, counted from before the read was sent.
/// A request that takes something away waits so long before it is answered. From then on, no
/// process relies on the earlier state (`docs/adr/0004-leases.md`). Every process on the tables has
/// the same lease.
pub const LEASE: Duration = Duration::from_millis(300);

/// As many items are kept. From the first number on, those that count no longer are thrown away before others are kept.
const SWEEP: usize = 1_000;
const MOST: usize = 10_000;

/// The result of reading a key.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Item(Item),
    Nothing,
}

impl Seen {
    pub(crate) fn of(item: Option<&Item>) -> Self {
        item.cloned().map_or(Self::Nothing, Self::Item)
    }
}

/// Results, each with the moment before it was read.
#[derive(Default)]
pub(crate) struct Recent(Mutex<HashMap<TableKey, (Moment, Seen)>>);

impl Recent {
    /// The result of reading a key less than [`LEASE`] ago.
    pub(crate) fn get(&self, key: &TableKey) -> Option<Seen> {
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, seen) = items.get(key)?;
        (read_at.age() < LEASE).then(|| seen.clone())
    }

    /// Keeps the results of keys that were read after this moment.
    pub(crate) fn keep(&self, read_at: Moment, read: impl Iterator<Item = (TableKey, Seen)>) {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() >= SWEEP {
            items.retain(|_, (read_at, _)| read_at.age() < LEASE);
        }
        for (key, seen) in read {
            if items.len() < MOST || items.contains_key(&key) {
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
        let clock = clock::Simulation::begin();
        let recent = Recent::default();
        let key = |role| TableKey::here(Role::key(&Ordinal(role)));
        recent.keep(Moment::now(), [(key(1), Seen::Item(Item::new(key(1).key))), (key(2), Seen::Nothing)].into_iter());
        assert!(matches!((recent.get(&key(1)), recent.get(&key(2))), (Some(Seen::Item(_)), Some(Seen::Nothing))));
        assert!(recent.get(&key(3)).is_none());
        tokio::select! {
            () = clock.drive() => {}
            () = clock::sleep(LEASE) => {}
        }
        assert!(recent.get(&key(1)).is_none() && recent.get(&key(2)).is_none());
    }
}
