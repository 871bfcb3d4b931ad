//! Successful responses of the token endpoint.

use permissions::{Token, UserSecret};
use serde::Serialize;

/// The only type of token that is issued (RFC 8693, section 3).
pub(crate) const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// A token (RFC 6749, section 5.1).
#[derive(Serialize)]
pub(crate) struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    /// Lifetime in seconds.
    expires_in: i64,
    /// For an exchange (RFC 8693, section 2.2.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_token_type: Option<&'static str>,
    /// Name of the user, which is not in the specification.
    username: String,
}

impl TokenResponse {
    /// Creates the response with a token that has just been created.
    pub(crate) fn new(secret: &UserSecret, token: &Token) -> Self {
        let now = runtime::clock::now_ms().div_euclid(1_000);
        Self {
            access_token: secret.token(),
            token_type: "Bearer",
            expires_in: token.expires.map_or(i64::MAX, |expires| expires - now),
            issued_token_type: None,
            username: secret.user().as_str().to_owned(),
        }
    }

    /// Adds what the response to an exchange requires.
    pub(crate) fn of_exchange(self) -> Self {
        Self { issued_token_type: Some(ACCESS_TOKEN), ..self }
    }
}
