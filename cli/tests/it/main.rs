//! The functions in a single process over an engine on disk, composed as in `serve`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests report failures by panicking")]

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
mod lists;
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
mod refusals;
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

/// With libc's allocator, these tests spend a fifth of their time allocating.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
