//! Typed access to the DynamoDB table: the only crate that calls DynamoDB.
//!
//! A caller has [`Table`]'s methods: get, put, update, query, batches, transactions. There is no
//! scan. The crate handles throttling, transaction conflicts, lost answers and unprocessed parts of
//! batches (`retry.rs`, `docs/consistency.md`). What a caller has to decide is one enum,
//! [`Failure`]. A refused condition of a single write brings the item as it is, so the next attempt
//! needs no read. A [`Meter`] counts requests and capacity units.
//!
//! An update never creates an item by accident: `Update::new` has the condition that the item
//! exists, `Update::upsert` has none. Every write may be sent again.

mod batch;
mod change;
mod collection_size;
mod connect;
mod counts;
mod create;
mod creation;
mod declared;
mod expression;
mod failure;
mod item;
mod meter;
mod query;
mod range;
mod retry;
mod table;
mod transaction;

pub use batch::TableKey;
pub use change::{Attempts, Plan, Refusal};
pub use connect::client;
pub use expression::{Condition, Path, Update};
pub use failure::{Failure, Reason, Result};
pub use item::{Item, Map, Value, bytes, bytes_set, map, number, text};
pub use meter::{Meter, ReadBytes, Usage};
pub use query::{Page, Query};
pub use retry::{Retry, timeouts};
pub use table::Table;
pub use transaction::Write;
