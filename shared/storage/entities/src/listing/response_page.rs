//! One page of a list, serialized for the response.

use mlflow_api::response_size::{MAX_PAGE_BYTES, ResponseSize};
use mlflow_api::{Error, Result};
use search::{Fingerprint, encode_page_token};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The entities of a page, as JSON. The page ends after the requested number of entities, or before
/// the response gets too long. The first entity always fits, so that every page makes progress.
///
/// Each entity is serialized once: the bytes that are counted are the bytes that are sent.
pub struct ResponsePage<K> {
    items: usize,
    entities: Vec<Box<RawValue>>,
    size: ResponseSize,
    /// Key of the last entity on the page.
    last: Option<K>,
    /// Whether there are more entities after the page.
    has_more: bool,
}

impl<K: Serialize> ResponsePage<K> {
    /// Creates a page of at most `items` entities.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self { items, entities: Vec::new(), size: ResponseSize::default(), last: None, has_more: false }
    }

    /// Returns the number of entities that the page still lacks, or 0 if it has ended.
    #[must_use]
    pub fn missing(&self) -> usize {
        if self.has_more { 0 } else { self.items.saturating_sub(self.entities.len()) }
    }

    /// Checks whether the page accepts no more entities.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.missing() == 0
    }

    /// Checks whether more entities after the page are known to exist.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_more
    }

    /// Checks whether the page has no entities yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Checks whether an entity that has at least `bytes` bytes as JSON fits. If it does not, the
    /// page ends before it. Callers use this to avoid reading a large entity in vain.
    pub fn has_room_for(&mut self, bytes: usize) -> bool {
        let size = self.size + ResponseSize::of_plain(bytes);
        self.has_more |= self.is_full() || (!self.entities.is_empty() && size.bytes_in_response() > MAX_PAGE_BYTES);
        !self.has_more
    }

    /// Adds the next entity, unless the page ends before it. Returns whether it was added.
    ///
    /// # Errors
    /// Returns an internal error if the entity cannot be serialized as JSON, which is a bug.
    pub fn add(&mut self, key: K, entity: &impl Serialize) -> Result<bool> {
        if !self.has_room_for(0) {
            return Ok(false);
        }
        let json = to_raw_value(entity).map_err(Error::internal)?;
        // The extra byte is the comma before the entity.
        let size = self.size + ResponseSize::of(json.get().as_bytes()) + ResponseSize::of_plain(1);
        self.has_more = !self.entities.is_empty() && size.bytes_in_response() > MAX_PAGE_BYTES;
        if !self.has_more {
            self.size = size;
            self.entities.push(json);
            self.last = Some(key);
        }
        Ok(!self.has_more)
    }

    /// Records that there are more entities after the page.
    pub fn ends_here(&mut self) {
        self.has_more = true;
    }

    /// Returns the entities, and the token of the next page of `search` if there is one. A page
    /// without entities has no token.
    pub fn finish(self, search: Fingerprint) -> Result<(Vec<Box<RawValue>>, Option<String>)> {
        self.finish_with(|last| encode_page_token(search, last))
    }

    /// Returns the entities, and a token that the caller creates from the key of the last entity.
    pub fn finish_with(self, token: impl FnOnce(&K) -> Result<String>) -> Result<(Vec<Box<RawValue>>, Option<String>)> {
        let last = self.last.filter(|_| self.has_more);
        Ok((self.entities, last.as_ref().map(token).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: fn() -> Fingerprint = || Fingerprint::of_dataset_records("d");

    fn taken(items: usize, entities: &[String]) -> (usize, bool) {
        let mut page = ResponsePage::new(items);
        for (key, entity) in entities.iter().enumerate() {
            if !page.add(key, entity).unwrap() {
                break;
            }
        }
        let (entities, token) = page.finish(SEARCH()).unwrap();
        (entities.len(), token.is_some())
    }

    #[test]
    fn a_page_ends_by_items_or_by_bytes() {
        let megabyte = "x".repeat(1_000_000);
        let few = vec!["x".to_owned(); 3];
        assert_eq!(taken(3, &few), (3, false));
        assert_eq!(taken(2, &few), (2, true));
        // In base64, a response takes 4/3 of its size, so four entities of 1 MB take 5.3 MB.
        assert_eq!(taken(10, &vec![megabyte.clone(); 4]), (4, false));
        assert_eq!(taken(10, &vec![megabyte; 5]), (4, true));
        // As JSON, a quote takes two bytes: a backslash and the quote. In a Lambda's response, the
        // JSON is itself a string, in which both are escaped, so the quote takes four bytes.
        assert_eq!(taken(10, &vec!["\"".repeat(1_000_000); 5]), (1, true));
    }

    #[test]
    fn the_first_entity_always_has_room() {
        let long = "x".repeat(3 * MAX_PAGE_BYTES);
        assert_eq!(taken(10, std::slice::from_ref(&long)), (1, false));
        assert_eq!(taken(10, &[long.clone(), "x".to_owned()]), (1, true));
        assert_eq!(taken(10, &["x".to_owned(), long]), (1, true));
        let mut page = ResponsePage::new(10);
        assert!(page.has_room_for(3 * MAX_PAGE_BYTES) && page.add(1, &"x").unwrap());
        assert!(page.has_room_for(1_000) && !page.has_room_for(3 * MAX_PAGE_BYTES));
        assert_eq!((page.missing(), page.add(2, &"x").unwrap()), (0, false));
    }

    #[test]
    fn a_page_without_entities_has_no_token() {
        let mut page = ResponsePage::<u32>::new(10);
        page.ends_here();
        let (entities, token) = page.finish(SEARCH()).unwrap();
        assert!(entities.is_empty() && token.is_none());
    }
}
