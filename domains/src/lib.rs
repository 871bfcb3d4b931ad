//! The list of all domains: one row each.
//!
//! The local server mounts them from here, GraphQL's inner calls included. The API, the functions, the log groups and
//! the alarms of `template.yaml`, the router of `cargo lambda watch`, the pages `docs/coverage.md`, `docs/limits.md`
//! and `docs/access.md`, and the walks of the tests over all routes follow from it. `docs/adding.md` says how to add
//! one.

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

/// All functions of the stack: those of the domains, and the indexer.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    DOMAINS.into_iter().map(|domain| &domain.function).chain([&fts_indexer::FUNCTION])
}
