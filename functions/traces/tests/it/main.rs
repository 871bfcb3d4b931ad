//! The traces function over the embedded engine.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod assessments;
mod deletion;
mod exports;
mod figures;
mod guarded;
mod recorded;
mod search;
mod server;
mod traces;
