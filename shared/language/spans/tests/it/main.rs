//! Spans as they are sent, stored and returned.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod packing;
mod stock;
mod whole;
