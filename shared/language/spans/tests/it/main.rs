//! Tests of spans in the form in which they are sent, stored and returned.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod end_to_end;
mod packing;
mod stock_comparison;
