//! The list of all domains, one line each.
//!
//! The local server with GraphQL's internal calls is built from this list, and so are the APIs,
//! functions, log groups and alarms of `template.yaml`, the router of `cargo lambda watch`, the
//! pages `docs/reference/coverage.md`, `docs/reference/access.md` and `docs/reference/levels.md`,
//! and the tests that cover all routes. `docs/reference/limits.md` is written by hand, and a test
//! checks that it lists every route. `docs/design/adding.md` explains how to add a domain.

pub mod template;

use domain::{Domain, Function};

/// All domains. The first one handles paths that no other domain has.
pub const DOMAINS: [&Domain; 11] = [
    &tracking::DOMAIN,
    &evaluation::DOMAIN,
    &registry::DOMAIN,
    &mcp_servers::DOMAIN,
    &skills::DOMAIN,
    &traces::DOMAIN,
    &artifacts::DOMAIN,
    &webhooks::DOMAIN,
    &auth::DOMAIN,
    &graphql::DOMAIN,
    &ui::DOMAIN,
];

/// Returns all functions of the stack: those of the domains, the indexer, the delivery of
/// events, and the housekeeper.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    DOMAINS.into_iter().map(|domain| &domain.function).chain([
        &fts_indexer::FUNCTION,
        &deliver::FUNCTION,
        &housekeeper::FUNCTION,
    ])
}
