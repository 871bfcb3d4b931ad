//! The store of the auth function, with an engine that injects faults, what its calls cost, and the
//! OAuth endpoints.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod faults;
mod generated;
mod identities;
mod logins;
mod memberships;
mod oauth;
mod password_policy;
mod renewals;
mod sessions;
mod site;

/// Replaces libc's allocator, because these tests spend a fifth of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
