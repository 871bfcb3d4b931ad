//! Selects, from many entities, those that come first in a given order.

use mlflow_api::response_size::MAX_PAGE_JSON_BYTES;

/// A collector that receives entities in any order, and keeps those that may be on the page: the
/// first ones in its order, limited by the requested number and by the size of a response. Memory
/// use therefore depends on the page, and not on how many entities pass the filter.
pub struct FirstEntities<K, T> {
    items: usize,
    most_bytes: usize,
    found: Vec<SelectedEntry<K, T>>,
    bytes: usize,
    /// Key of the first entity that was dropped. All later entities are dropped too, even if they
    /// are small enough to fit, because a page must not skip any.
    end: Option<K>,
}

struct SelectedEntry<K, T> {
    key: K,
    entity: T,
    bytes: usize,
}

/// The entities that a [`FirstEntities`] kept.
pub struct SelectedEntities<K, T> {
    /// Entities in order, with their sizes in bytes.
    pub entities: Vec<(K, T, usize)>,
    /// Key of the first entity that was received and did not fit. `None` if all fit.
    pub end: Option<K>,
}

impl<K, T> SelectedEntities<K, T> {
    /// Checks whether the collector received more entities than these.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.end.is_some()
    }
}

impl<K: Ord, T> FirstEntities<K, T> {
    /// Creates a collector of at most `items` entities.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self { items, most_bytes: MAX_PAGE_JSON_BYTES, found: Vec::new(), bytes: 0, end: None }
    }

    /// Adds an entity of about `bytes` bytes. Keys are unique.
    pub fn add(&mut self, key: K, entity: T, bytes: usize) {
        if self.end.as_ref().is_some_and(|end| key > *end) {
            return;
        }
        self.found.push(SelectedEntry { key, entity, bytes });
        self.bytes += bytes;
        // Sorting occasionally is cheaper than keeping everything in order.
        if self.found.len() > self.items.saturating_mul(2) || self.bytes > 2 * self.most_bytes {
            self.cut();
        }
    }

    /// Adds the entities that another collector kept.
    pub fn merge(&mut self, found: SelectedEntities<K, T>) {
        for (key, entity, bytes) in found.entities {
            self.add(key, entity, bytes);
        }
        if let Some(end) = found.end {
            self.end_before(end);
        }
    }

    /// Returns the kept entities, in order.
    #[must_use]
    pub fn finish(mut self) -> SelectedEntities<K, T> {
        self.cut();
        let entities = self.found.into_iter().map(|entry| (entry.key, entry.entity, entry.bytes)).collect();
        SelectedEntities { entities, end: self.end }
    }

    fn cut(&mut self) {
        self.found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut bytes = 0;
        let fits = self.found.iter().take(self.items).enumerate().take_while(|(place, entry)| {
            bytes += entry.bytes;
            *place == 0 || bytes <= self.most_bytes
        });
        let kept = fits.count();
        let dropped = self.found.drain(kept..).next();
        if let Some(dropped) = dropped {
            self.end_before(dropped.key);
        }
        self.bytes = self.found.iter().map(|entry| entry.bytes).sum();
    }

    /// Records that `dropped` is not on the page, and drops all entities after it.
    fn end_before(&mut self, dropped: K) {
        if self.end.as_ref().is_none_or(|end| dropped < *end) {
            self.found.retain(|entry| entry.key < dropped);
            self.end = Some(dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entity_that_is_too_long_is_kept_if_it_is_first() {
        let mut top = FirstEntities { most_bytes: 10, ..FirstEntities::new(5) };
        top.add(2, 'b', 1);
        top.add(1, 'a', 50);
        let found = top.finish();
        assert_eq!((found.entities, found.end), (vec![(1, 'a', 50)], Some(2)));
    }

    proptest! {
        #[test]
        fn the_first_are_kept_whatever_the_order(sizes in prop::collection::vec(0..8_usize, 0..60), items in 1..9_usize) {
            let keys: Vec<_> = (0..sizes.len()).map(|key| (key * 37) % 61).collect();
            let new = || FirstEntities { most_bytes: 20, ..FirstEntities::new(items) };
            let (mut top, mut other) = (new(), new());
            for (key, bytes) in keys.iter().zip(&sizes) {
                let one = if key % 3 == 0 { &mut other } else { &mut top };
                one.add(*key, *bytes, *bytes);
            }
            top.merge(other.finish());
            let mut all: Vec<_> = keys.into_iter().zip(sizes).map(|(key, bytes)| (key, bytes, bytes)).collect();
            all.sort_unstable();
            let found = top.finish();
            prop_assert_eq!(found.has_more(), found.entities.len() < all.len());
            prop_assert_eq!(&found.entities, &all[..found.entities.len()]);
            // If entities were dropped, the kept ones together with the next one must exceed a
            // limit.
            let next = all.get(..=found.entities.len()).unwrap_or_default();
            let bytes: usize = next.iter().map(|(.., bytes)| bytes).sum();
            prop_assert!(!found.has_more() || next.len() > items || bytes > 20);
        }
    }
}
