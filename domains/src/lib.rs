//! The list of all domains, one line each.
//!
//! From it follow the local server with GraphQL's inner calls, and the API, the functions, the log
//! groups and the alarms of `template.yaml`. So do the router of `cargo lambda watch`, the pages
//! `docs/reference/coverage.md`, `docs/reference/access.md` and `docs/reference/levels.md`, and the walks of the tests over all
//! routes. `docs/reference/limits.md` is written by hand: a test checks that it has every route.
//! `docs/design/adding.md` says how to add a domain.

pub mod template;

use domain::{Domain, Function};

/// All domains. The first answers what no other has.
pub const DOMAINS: [&Domain; 8] = [
    &tracking::DOMAIN,
    &evaluation::DOMAIN,
    &registry::DOMAIN,
    &traces::DOMAIN,
    &artifacts::DOMAIN,
    &auth::DOMAIN,
    &graphql::DOMAIN,
    &ui::DOMAIN,
];

/// All functions of the stack: those of the domains, the indexer and the housekeeper.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    DOMAINS.into_iter().map(|domain| &domain.function).chain([&fts_indexer::FUNCTION, &housekeeper::FUNCTION])
}
