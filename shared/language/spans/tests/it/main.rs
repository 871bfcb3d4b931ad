//! Spans as they are sent, stored and returned.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod packing;
mod stock;
mod whole;
