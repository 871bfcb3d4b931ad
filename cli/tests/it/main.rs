//! The functions in a single process over an engine on disk, composed as in `serve`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests report failures by panicking")]

mod access_page;
mod authorizer_interface;
mod blocked_disk;
mod broken_items;
mod config;
mod copy;
mod creators;
mod denied_fields;
mod faults;
mod identities;
mod interrupted_revocation;
mod levels;
mod lists;
mod many_workspaces;
mod memory;
mod migration;
mod needs;
mod no_permissions;
mod other_users_runs;
mod other_workspace;
mod power_cut;
mod principals;
mod program;
mod proxy;
mod refusal_costs;
mod released;
mod renamed_models;
mod request_limits;
mod request_paths;
mod reused_names;
mod sessions;
mod stored_bytes;
mod table_probe;
mod teams;
mod test_server;
mod throttling;
mod tokens;
mod users;
mod users_server;
mod workspaces;

/// Replaces libc's allocator, in which these tests spend a fifth of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
