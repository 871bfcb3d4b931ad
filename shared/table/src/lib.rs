//! Typed access to the DynamoDB table: the only crate that calls DynamoDB.
//!
//! What a caller can ask is [`Table`]'s methods: get, put, update, query, batches, transactions. There is no scan. Throttling,
//! transaction conflicts, lost answers and unprocessed parts of batches are dealt with in here; what is left for a caller to
//! decide on is one enum, [`Failure`]. A [`Meter`] counts requests and capacity units.

mod batch;
mod change;
mod collection_size;
mod connect;
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
