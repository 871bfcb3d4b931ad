//! The engine as its clients use it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod access;
mod capacity;
mod durability;
mod faults;
mod limits;
mod limits_module;
mod opening_and_sweeping;
mod requests;
mod stream;
mod table;
