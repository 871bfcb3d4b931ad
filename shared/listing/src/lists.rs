//! Where the lists of a kind of entity are.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use key_schema::{DescendingDouble, KeyRange, Segment, place};
use search::{Columns, List, NumberRange, TimeRange};
use table::Item;

/// The lists of one kind of entity in one partition, as one search reads them. Cheap to clone.
pub trait Lists: Clone + Send + Sync {
    /// The columns by which the entities are indexed.
    type Columns: Columns<Text: Send + Sync, Number: Send + Sync> + Send + Sync;
    /// The location of an entity, by which it is read.
    type At: Clone + Debug + Eq + Hash + Send + Sync;

    /// The keys of a list; of lists that are newest first only those of the times that the search asks for.
    fn range(&self, list: &List<Self::Columns>) -> KeyRange;

    /// When the entity of a key began, in ms, and where it is; `None` if it is no key of a list.
    fn entity(&self, key: &str) -> Option<(i64, Self::At)>;

    /// Whether an item of a list is an entity and not only the key of one: the list of all may hold
    /// the entities themselves.
    #[must_use]
    fn is_entity(_item: &Item) -> bool {
        false
    }

    /// The id of an entity, in its form in keys.
    fn id(at: &Self::At) -> &str;

    /// The beginning of keys of the list by a column, for texts that begin so.
    fn text(column: &<Self::Columns as Columns>::Text, text: &str) -> String;

    /// The text in a place of a list by a column; `None` if the key has no room for all of it.
    fn whole_text(column: &<Self::Columns as Columns>::Text, place: &str) -> Option<String>;

    /// From this length on, in bytes, the text in a key of the list by a column may have been cut.
    /// A cut ends after a whole character.
    fn uncut(column: &<Self::Columns as Columns>::Text) -> usize;
}

/// An entity in a list.
#[derive(Clone, Debug)]
pub struct Entry<A> {
    /// Where the entity is.
    pub at: A,
    /// When it began, in ms.
    pub started: i64,
    /// Its place in the list: its key, after the beginning that all keys of the list share.
    pub place: String,
    /// Its place in a list that is newest first: comparable across lists.
    pub newest_first: String,
    /// The entity, where the list holds entities.
    pub item: Option<Arc<Item>>,
}

/// A number in its form in keys.
pub(crate) fn number(value: f64) -> String {
    // The two zeros are one number.
    DescendingDouble(value + 0.0).text()
}

/// Those of a list by a number that have such a number. The greatest come first.
#[must_use]
pub fn within_numbers(range: KeyRange, numbers: NumberRange) -> KeyRange {
    let range = match numbers.greatest {
        Some(greatest) => range.starting(&number(greatest)),
        None => range,
    };
    match (numbers.least, numbers.with_nan) {
        (_, true) => range,
        (Some(least), false) => range.until_beginning(&number(least)),
        (None, false) => range.until_beginning(&number(f64::NEG_INFINITY)),
    }
}

/// Those of a list that is newest first which began then.
#[must_use]
pub fn within_time(range: KeyRange, started: TimeRange) -> KeyRange {
    let range = match started.until {
        Some(until) => range.starting(&place::time(until)),
        None => range,
    };
    match started.from {
        Some(from) => range.until_beginning(&place::time(from)),
        None => range,
    }
}
