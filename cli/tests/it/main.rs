//! The functions in one process over an engine on disk, as `serve` has them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod bounds;
mod foreign_runs;
mod health;
mod memory;
mod needs;
mod power_cut;
mod program;
mod site;
mod throttling;
mod unreadable;
mod workspaces;
mod writes;
