//! Responses of token endpoints.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::client_secret::RefreshToken;
use crate::transport::ProviderResponse;

/// Maximum number of characters of a provider's error message that are kept.
const MAX_MESSAGE_CHARS: usize = 200;

/// Tokens that the provider has issued.
#[expect(clippy::struct_field_names, reason = "the names are those of the specification")]
pub(crate) struct TokenResponse {
    pub(crate) id_token: Option<Zeroizing<String>>,
    pub(crate) access_token: Option<Zeroizing<String>>,
    pub(crate) refresh_token: Option<RefreshToken>,
}

/// Why the provider has issued none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// The client id or the client secret is wrong, so the code or token was not examined.
    Client(String),
    /// The code or token is refused.
    Grant(String),
    /// The request was refused because there were too many.
    Throttled(String),
    /// The provider has failed, and may have used the code or token.
    Unavailable(String),
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of the specification")]
struct Tokens {
    #[serde(default)]
    id_token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl TokenResponse {
    /// Reads a response.
    pub(crate) fn parse(response: &ProviderResponse) -> Result<Self, TokenError> {
        if response.status != 200 {
            return Err(refusal(response));
        }
        let malformed = || TokenError::Unavailable("the token endpoint sent a malformed response".to_owned());
        let tokens: Tokens = object(&response.body).ok_or_else(malformed)?;
        let refresh_token = tokens.refresh_token.filter(|token| !token.is_empty()).map(RefreshToken::new).transpose();
        let refresh_token = refresh_token.map_err(|error| TokenError::Unavailable(error.to_string()))?;
        let (id_token, access_token) = (tokens.id_token.map(Zeroizing::new), tokens.access_token.map(Zeroizing::new));
        Ok(Self { id_token, access_token, refresh_token })
    }
}

/// Classifies an error response (RFC 6749, section 5.2).
fn refusal(response: &ProviderResponse) -> TokenError {
    let status = response.status;
    if status == 429 {
        return TokenError::Throttled("the token endpoint responded with status 429".to_owned());
    }
    let refusal = object::<Refusal>(&response.body).filter(|_| (400..500).contains(&status));
    let Some(Refusal { error, error_description }) = refusal else {
        return TokenError::Unavailable(format!("the token endpoint responded with status {status}"));
    };
    let message = match error_description {
        Some(description) => printable(&format!("{error}: {description}")),
        None => printable(&error),
    };
    match error.as_str() {
        "invalid_client" | "unauthorized_client" | "unsupported_grant_type" => TokenError::Client(message),
        "temporarily_unavailable" | "server_error" => TokenError::Unavailable(message),
        "slow_down" => TokenError::Throttled(message),
        _ => TokenError::Grant(message),
    }
}

/// Reads an object. Serde would also read a list of its members.
fn object<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let object: Map<String, Value> = serde_json::from_slice(body).ok()?;
    T::deserialize(Value::Object(object)).ok()
}

/// Returns the beginning of a provider's message, on one line.
fn printable(message: &str) -> String {
    let one_line = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    one_line.take(MAX_MESSAGE_CHARS).collect::<String>().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
