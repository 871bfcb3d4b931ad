//! Every key and index of the tables, nothing else: no I/O, no AWS.
//!
//! [`rows`] is the whole table of data on one page, [`index`] its secondary indexes.
//! [`access_rows`] is the table of access. A row's `key` builds the key, its `parse` reads one, its
//! `all` is the range that a query asks for. [`ranges`] has ranges that are no plain prefix.
//! [`attributes`] has the names of attributes, each with one type of [`kind`]. Rows declare them
//! with this type, items are checked for it, and `Item::get` of `table` reads a value of it.
//! `segment.rs` and `text.rs` have the parts that keys are made of, here called segments. Segments
//! of a metric's points are something else.
//! `docs/table.md` and the table in `template.yaml` are generated from here ([`document`],
//! [`definition`]).
//!
//! Only `ModelKey::of` makes the key of a registered model from its name.

#[macro_use]
mod macros;
pub mod access_rows;
pub mod attributes;
mod declared;
pub mod definition;
pub mod document;
pub mod index;
pub mod kind;
mod list;
pub mod part;
pub mod place;
mod range;
pub mod ranges;
pub mod rows;
mod segment;
mod text;

pub use index::{IndexEntry, IndexKey};
pub use list::{ListKind, OwnStage, TokenPart};
pub use range::{KeyRange, Prefix, SortKeys};
pub use segment::{
    Ascending, Bucket, Descending, DescendingDouble, Digest, Level, ModelKind, Ordinal, Segment, Shard, Stage,
    WideDigest, fnv1a_128, halves, sha256_128,
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
    /// The key as one text. No part of a key holds a blank.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.pk, self.sk)
    }

    /// A key from its text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (pk, sk) = text.split_once(' ')?;
        Some(Self { pk: pk.to_owned(), sk: sk.to_owned() })
    }
}
