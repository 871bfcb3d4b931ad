//! The functions in one process over an engine on disk, as `serve` has them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod access_page;
mod bounds;
mod config;
mod creators;
mod cut_off;
mod faults;
mod foreign;
mod foreign_runs;
mod frame;
mod front;
mod health;
mod levels;
mod many_workspaces;
mod memory;
mod migration;
mod needs;
mod people;
mod power_cut;
mod principals;
mod probe;
mod program;
mod proxy;
mod released;
mod reused_names;
mod sessions;
mod site;
mod swapped;
mod teams;
mod throttling;
mod tokens;
mod ungranted;
mod unreadable;
mod users;
mod withheld;
mod workspaces;

/// A fifth of the time of such tests went to the allocator of libc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
