//! Removing for good, over a table of the test's own, with clients and the indexer beside it.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod full;
mod lab;
mod policy;
mod races;
mod refusals;
mod removal;
