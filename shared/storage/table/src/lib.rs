//! Typed access to the DynamoDB table. This is the only crate that calls DynamoDB.
//!
//! The methods of [`Table`] are gets, puts, updates, queries, batches and transactions. There is no
//! scan. The crate handles throttling, transaction conflicts, lost responses and unprocessed parts
//! of batches (`retry.rs`, `docs/design/consistency.md`). All remaining failures are variants of one enum,
//! [`Failure`]. If the condition of a single write does not hold, the failure contains the current
//! item, so the next attempt needs no read. A [`Meter`] counts requests and capacity units.
//!
//! An update never creates an item by accident: `Update::new` adds the condition that the item
//! exists, and only `Update::upsert` does not. Every write is safe to send again.

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
