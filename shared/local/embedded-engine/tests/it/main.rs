//! The engine as its clients use it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod access;
mod capacity;
mod durability;
mod faults;
mod housekeeping;
mod limits;
mod requests;
mod stream;
mod table;
mod within_limits;
