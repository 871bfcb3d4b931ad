//! Finds the rule that a machine's JWT satisfies.

use thiserror::Error;

use crate::claims::Claims;
use crate::configuration::{Configuration, MachineRule};
use crate::issuers::{FetchLimit, Issuers};
use crate::jwt::{JwtError, JwtExpectations, JwtKind, unverified_issuer, verify};
use crate::keys::KeySet;
use crate::provider_error::ProviderError;

/// Why a machine's JWT is refused. Each message is one sentence without a final period, and may be
/// sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The JWT is not valid, or no rule has its audience.
    #[error(transparent)]
    Token(#[from] JwtError),
    /// No rule has the issuer of the JWT.
    #[error("no machine rule has the issuer of the token")]
    UnknownIssuer,
    /// The JWT is valid, but its claims satisfy no rule.
    #[error("the claims of the token satisfy no machine rule")]
    NoRule,
    /// The issuer's keys cannot be fetched.
    #[error("the keys of the issuer cannot be fetched; try again later")]
    Unavailable(ProviderError),
}

/// Verifies the JWT of a machine, and returns the first rule that it satisfies, in the order of the
/// file, with the claims. Sends requests only to issuers of rules, and at most one per minute for
/// tokens with unknown keys.
///
/// # Errors
/// A [`MachineError`] if the token satisfies no rule.
pub async fn machine_rule<'a>(
    configuration: &'a Configuration,
    issuers: &Issuers,
    token: &str,
) -> Result<(&'a MachineRule, Claims), MachineError> {
    let issuer = unverified_issuer(token)?;
    let mut reason = None;
    for rule in configuration.machines.iter().filter(|rule| rule.issuer == issuer) {
        let error = match verified(rule, issuers, token).await {
            Ok(claims) if rule.matches(&claims) => return Ok((rule, claims)),
            Ok(_) => MachineError::NoRule,
            Err(error) => error,
        };
        reason = Some(match reason {
            Some(other) if usefulness(&other) >= usefulness(&error) => other,
            _ => error,
        });
    }
    Err(reason.unwrap_or(MachineError::UnknownIssuer))
}

/// Verifies a token for the issuer and the audience of a rule.
async fn verified(rule: &MachineRule, issuers: &Issuers, token: &str) -> Result<Claims, MachineError> {
    if let Some(keys) = &rule.keys {
        let keys = KeySet::parse(keys).unwrap_or_default();
        let now = runtime::clock::now_ms().div_euclid(1000);
        let expected = JwtExpectations { issuer: &rule.issuer, audience: &rule.audience, kind: JwtKind::Machine, now };
        return Ok(verify(token, &keys, &expected)?);
    }
    let verified = issuers.verify(&rule.issuer, token, (&rule.audience, JwtKind::Machine), FetchLimit::PerMinute).await;
    verified.map_err(|error| match error {
        ProviderError::Token(error) => MachineError::Token(error),
        other => MachineError::Unavailable(other),
    })
}

/// Orders the reasons for which several rules are not satisfied by how far the token got.
fn usefulness(error: &MachineError) -> u8 {
    match error {
        MachineError::NoRule => 5,
        // These are checked after the audience.
        MachineError::Token(JwtError::Expired(_) | JwtError::NotYetValid | JwtError::Claim(_)) => 4,
        MachineError::Token(JwtError::Audience { .. }) => 3,
        MachineError::Unavailable(_) => 2,
        MachineError::Token(_) => 1,
        MachineError::UnknownIssuer => 0,
    }
}

#[cfg(test)]
mod tests;
