//! Typed access to the DynamoDB table. This is the only crate that calls DynamoDB.
//!
//! The methods of [`Table`] are gets, puts, updates, queries, batches and transactions. There is no
//! scan. The crate handles throttling, transaction conflicts, lost responses and unprocessed parts
//! of batches (`retry.rs`, `docs/design/consistency.md`). All remaining failures are variants of one enum,
//! [`Failure`]. If the condition of a single write does not hold, the failure contains the current
//! item, so the next attempt needs no read. A [`UsageMeter`] counts requests and capacity units.
//!
//! An update never creates an item by accident: `Update::new` adds the condition that the item
//! exists, and only `Update::upsert` does not. Every write is safe to send again.

mod batch;
mod collection_size;
mod connect;
mod entity_creation;
mod expression;
mod failure;
mod item;
mod item_check;
mod item_counts;
mod meter;
mod optimistic_change;
mod query;
mod range_deletion;
mod retry;
mod table;
mod table_creation;
mod transaction;

pub use batch::TableKey;
pub use connect::client;
pub use expression::{AttributePath, Condition, Update};
pub use failure::{Failure, Result, WriteRefusal};
pub use item::{Item, Map, Value, bytes, bytes_set, map, number, text};
pub use meter::{ConsumedUnits, ReadBytes, UsageMeter};
pub use optimistic_change::{ChangeAttempts, ChangePlan, RefusedWrites};
pub use query::{Query, QueryPage};
pub use retry::{RetryPolicy, timeouts};
pub use table::Table;
pub use transaction::Write;
