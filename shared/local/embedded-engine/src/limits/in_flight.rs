//! Tracks the items that requests in flight write or check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::requested_items::ItemKey;

/// The items that requests in flight hold. A request releases its items when it is answered. Clones
/// share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Arc<Mutex<HeldItemSets>>);

#[derive(Debug, Default)]
struct HeldItemSets {
    /// Number of single writes in flight, by item.
    writes: BTreeMap<ItemKey, usize>,
    /// Items that write transactions hold. Only one transaction can hold an item.
    transactions: BTreeSet<ItemKey>,
}

/// The items that a request holds. Dropping it releases them.
#[derive(Debug)]
pub(super) struct HeldItems {
    in_flight: InFlight,
    items: Vec<ItemKey>,
    is_transaction: bool,
}

impl InFlight {
    /// Acquires the items of a write transaction, including those that are only checked. If other
    /// requests hold any of the items, returns for each item whether it is held.
    pub(super) fn transaction(&self, items: Vec<ItemKey>) -> Result<HeldItems, Vec<bool>> {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<_> = items.iter().map(|item| holders.has(item)).collect();
        if held.contains(&true) {
            return Err(held);
        }
        holders.transactions.extend(items.iter().cloned());
        Ok(HeldItems { in_flight: self.clone(), items, is_transaction: true })
    }

    /// Returns for each item of a read transaction whether another request holds it. The read
    /// transaction itself holds no items.
    pub(super) fn of_reader(&self, items: &[ItemKey]) -> Vec<bool> {
        let holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        items.iter().map(|item| holders.has(item)).collect()
    }

    /// Acquires the item of a single write. Returns `None` if a transaction holds it.
    pub(super) fn write(&self, item: ItemKey) -> Option<HeldItems> {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.transactions.contains(&item) {
            return None;
        }
        *holders.writes.entry(item.clone()).or_default() += 1;
        Some(HeldItems { in_flight: self.clone(), items: vec![item], is_transaction: false })
    }
}

impl HeldItemSets {
    fn has(&self, item: &ItemKey) -> bool {
        self.transactions.contains(item) || self.writes.contains_key(item)
    }
}

impl Drop for HeldItems {
    fn drop(&mut self) {
        let mut holders = self.in_flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        for item in &self.items {
            if self.is_transaction {
                holders.transactions.remove(item);
            } else if let Some(writes) = holders.writes.get_mut(item) {
                *writes -= 1;
                if *writes == 0 {
                    holders.writes.remove(item);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str) -> ItemKey {
        ItemKey { table: "t".to_owned(), key: name.to_owned() }
    }

    #[test]
    fn transactions_exclude_each_other_and_writes() {
        let in_flight = InFlight::default();
        let first = in_flight.transaction(vec![item("a"), item("b")]).unwrap();
        assert_eq!(in_flight.transaction(vec![item("c"), item("b")]).unwrap_err(), [false, true]);
        assert!(in_flight.write(item("a")).is_none());
        assert_eq!(in_flight.of_reader(&[item("a"), item("c")]), [true, false]);
        let others = in_flight.transaction(vec![item("c")]).unwrap();
        drop(first);
        let (one, two) = (in_flight.write(item("a")).unwrap(), in_flight.write(item("a")).unwrap());
        drop(one);
        assert_eq!(in_flight.transaction(vec![item("a")]).unwrap_err(), [true], "one write is still in flight");
        drop((two, others));
        in_flight.transaction(vec![item("a"), item("b"), item("c")]).unwrap();
    }
}
