//! The OAuth endpoints and the page of logins, over the embedded engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod login_page;
mod logins;
mod machines;
mod oauth_site;

/// Replaces libc's allocator, because these tests spend a fifth of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
