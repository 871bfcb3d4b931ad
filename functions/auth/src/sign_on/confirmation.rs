//! How long the confirmation of a person by a provider is valid.

use identity_providers::Configuration;

/// Number of seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// Returns until when a confirmation that a provider gives now covers the API tokens of a person, in
/// seconds since 1970.
pub(super) fn confirmed_until(configuration: &Configuration) -> i64 {
    runtime::clock::now_ms() / 1_000 + i64::from(configuration.token_days) * DAY_SECONDS
}
