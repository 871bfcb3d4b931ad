//! DynamoDB in the same process, for laptops and tests.
//!
//! [`Engine`] holds a dynoxide database (DynamoDB's operations over SQLite) in a directory or in
//! memory. The rest of the project uses it through an ordinary
//! [`Client`](aws_sdk_dynamodb::Client): [`Engine::client`] calls it without a socket, and
//! [`Engine::serve`] puts it on a loopback port for callers with its access key. [`faults`] injects
//! failures on request: throttling, conflicts, lost responses, stale indexes. [`limits`] adds
//! limits that DynamoDB has and the engine does not, such as the throughput of a partition.
//!
//! No deployed function depends on this crate.

mod access_key;
mod aws_json;
mod batch_import;
mod batch_json;
mod client;
mod concurrent_reads;
mod connector;
mod engine;
mod error;
pub mod faults;
mod keyless_storage;
pub mod limits;
mod log_sync;
mod operations;
mod server;
mod sqlite_connection;
mod stream;
mod stream_filter;
mod table_clustering;
mod threads;
mod ttl_index;

pub use access_key::AccessKey;
pub use client::{client_for_endpoint, client_over, client_with_key};
pub use engine::Engine;
pub use error::EngineError;
pub use server::Server;
pub use stream::StreamReader;
pub use stream_filter::StreamFilter;
