//! The schema of the tables: all keys, indexes and attributes. No I/O, and no dependency on AWS.
//!
//! [`rows`] declares the whole data table on one page, and [`index`] its secondary indexes.
//! [`access_rows`] declares the access table. For each row, `key` builds the key, `parse` reads it
//! back, and `all` is the range to query. [`ranges`] has the ranges that are not a plain prefix.
//!
//! [`attributes`] has the names of attributes, each with one type of [`kind`]. Rows declare their
//! attributes with these types, items are checked against them, and `Item::get` of `table` returns
//! values of the corresponding Rust type. `segment.rs` and `text.rs` have the parts that keys
//! consist of, called segments here. They are unrelated to the segments of a metric's points.
//!
//! `docs/reference/table.md` and the table in `template.yaml` are generated from this crate
//! ([`table_reference`], [`definition`]).
//!
//! Only `ModelKey::of` builds the key of a registered model from its name.

#[macro_use]
mod macros;
pub mod access_rows;
pub mod attributes;
pub mod definition;
pub mod index;
pub mod key_parts;
mod key_range;
pub mod kind;
mod list;
pub mod list_positions;
pub mod ranges;
mod row_attributes;
pub mod rows;
mod segment;
pub mod table_reference;
mod text;

pub use index::{IndexEntry, IndexKey};
pub use key_range::{KeyRange, Prefix, SortKeys};
pub use list::{ListKind, OwnStage, TokenPart};
pub use segment::{
    Ascending, Bucket, Descending, DescendingDouble, Digest, Level, ModelKind, Ordinal, Segment, SequenceNumber, Shard,
    Stage, WideDigest, fnv1a_128, halves, sha256_128,
};
pub use text::{Field, ModelKey, Name, TextSegment, Value};

/// The primary key of an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Partition key, the attribute `PK`.
    pub pk: String,
    /// Sort key, the attribute `SK`.
    pub sk: String,
}

impl Key {
    /// Returns the key as a single string. Parts of a key never contain a space.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.pk, self.sk)
    }

    /// Parses a key from its text. Returns `None` if the text has no space.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (pk, sk) = text.split_once(' ')?;
        Some(Self { pk: pk.to_owned(), sk: sk.to_owned() })
    }
}
