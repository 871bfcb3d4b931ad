//! Items that requests under way write or check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::touch::ItemKey;

/// The requests that hold items until they are answered. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Arc<Mutex<Holders>>);

#[derive(Debug, Default)]
struct Holders {
    /// Requests that write one item, by the item; it may be several.
    writes: BTreeMap<ItemKey, usize>,
    /// Items of transactions that write. Each is in one.
    transactions: BTreeSet<ItemKey>,
}

/// A request that holds items. Dropped, it holds them no longer.
#[derive(Debug)]
pub(super) struct Held {
    in_flight: InFlight,
    items: Vec<ItemKey>,
    is_transaction: bool,
}

impl InFlight {
    /// Takes the items of a transaction that writes; which of them others hold, by position, if any. Items that are only checked are held, too.
    pub(super) fn transaction(&self, items: Vec<ItemKey>) -> Result<Held, Vec<bool>> {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<_> = items.iter().map(|item| holders.has(item)).collect();
        if held.contains(&true) {
            return Err(held);
        }
        holders.transactions.extend(items.iter().cloned());
        Ok(Held { in_flight: self.clone(), items, is_transaction: true })
    }

    /// Whether others hold the items of a transaction that reads, by position. It holds none itself.
    pub(super) fn of_reader(&self, items: &[ItemKey]) -> Vec<bool> {
        let holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        items.iter().map(|item| holders.has(item)).collect()
    }

    /// Takes an item that a request by itself writes; nothing, if a transaction holds it.
    pub(super) fn write(&self, item: ItemKey) -> Option<Held> {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.transactions.contains(&item) {
            return None;
        }
        *holders.writes.entry(item.clone()).or_default() += 1;
        Some(Held { in_flight: self.clone(), items: vec![item], is_transaction: false })
    }
}

impl Holders {
    fn has(&self, item: &ItemKey) -> bool {
        self.transactions.contains(item) || self.writes.contains_key(item)
    }
}

impl Drop for Held {
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
        assert_eq!(in_flight.transaction(vec![item("a")]).unwrap_err(), [true], "one write is still under way");
        drop((two, others));
        in_flight.transaction(vec![item("a"), item("b"), item("c")]).unwrap();
    }
}
