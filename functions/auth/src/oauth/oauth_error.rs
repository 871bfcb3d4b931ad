//! Errors of the OAuth endpoints (RFC 6749, section 5.2; RFC 8628, section 3.5; RFC 8693, section
//! 2.2.2).

use http::header::PRAGMA;
use http::{HeaderValue, StatusCode};
use mlflow_api::{Error, ErrorCode};
use serde::Serialize;
use service::EndpointResponse;

/// The code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OauthErrorCode {
    /// The request lacks a parameter, repeats one, or has an invalid one.
    InvalidRequest,
    /// The JWT, code or verifier is invalid, has expired, or has been used.
    InvalidGrant,
    /// The token was requested for another server.
    InvalidTarget,
    /// The server does not support this type of grant.
    UnsupportedGrantType,
    /// The user has not approved the login yet.
    AuthorizationPending,
    /// The client polls too often, or begins too many logins.
    SlowDown,
    /// The user has denied the login.
    AccessDenied,
    /// The login was not approved in time.
    ExpiredToken,
    /// The issuer of the JWT cannot be reached, or the server is busy.
    TemporarilyUnavailable,
}

/// An error with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OauthError {
    /// The code.
    pub(crate) code: OauthErrorCode,
    /// One sentence for the user of the client.
    pub(crate) description: String,
}

/// Why a request to an OAuth endpoint failed.
#[derive(Debug)]
pub(crate) enum OauthFailure {
    /// The request is refused.
    Refused(OauthError),
    /// The server failed.
    Server(Error),
}

/// The result of an OAuth endpoint.
pub(crate) type OauthResult<T> = Result<T, OauthFailure>;

#[derive(Serialize)]
struct ErrorBody {
    error: OauthErrorCode,
    error_description: String,
}

impl OauthErrorCode {
    /// Creates the error with a description.
    pub(crate) fn because(self, description: impl Into<String>) -> OauthFailure {
        OauthFailure::Refused(OauthError { code: self, description: description.into() })
    }

    fn status(self) -> StatusCode {
        match self {
            Self::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<Error> for OauthFailure {
    /// Converts an error of the store. Refusals of the store, such as one for a user with too many
    /// tokens, are `invalid_grant`.
    fn from(error: Error) -> Self {
        match error.code {
            ErrorCode::ResourceExhausted => OauthErrorCode::TemporarilyUnavailable.because(error.message),
            code if code.http_status() < 500 => OauthErrorCode::InvalidGrant.because(error.message),
            _ => Self::Server(error),
        }
    }
}

/// Returns the response to a request, with the headers that prevent caching.
///
/// # Errors
/// Returns the error of the server, if it failed.
pub(crate) fn response<T: Serialize>(outcome: OauthResult<T>) -> mlflow_api::Result<EndpointResponse> {
    let answer = match outcome {
        Ok(content) => json(StatusCode::OK, &content)?,
        Err(OauthFailure::Refused(error)) => {
            let description = printable(&error.description);
            json(error.code.status(), &ErrorBody { error: error.code, error_description: description })?
        }
        Err(OauthFailure::Server(error)) => return Err(error),
    };
    // The router adds `Cache-Control: no-store`.
    Ok(answer.with_header(PRAGMA, HeaderValue::from_static("no-cache")))
}

fn json(status: StatusCode, content: &impl Serialize) -> mlflow_api::Result<EndpointResponse> {
    let body = serde_json::to_vec(content).map_err(Error::internal)?;
    Ok(EndpointResponse::OtherProtocol { status, content_type: "application/json", body })
}

/// Returns a text with only the characters that RFC 6749 permits in a description.
fn printable(text: &str) -> String {
    let permitted = |character| match character {
        '"' => '\'',
        '\\' => '/',
        ' '..='~' => character,
        _ => '?',
    };
    text.chars().map(permitted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(failure: OauthFailure) -> (u16, String) {
        let EndpointResponse::WithHeader(answer, name, _) = response::<()>(Err(failure)).unwrap() else { panic!() };
        let EndpointResponse::OtherProtocol { status, body, .. } = *answer else { panic!() };
        assert_eq!(name, PRAGMA);
        (status.as_u16(), String::from_utf8(body).unwrap())
    }

    #[test]
    fn errors_have_the_form_of_the_specification() {
        let failure = OauthErrorCode::InvalidGrant.because("The name \"größe\\\" is unknown.");
        let body = r#"{"error":"invalid_grant","error_description":"The name 'gr??e/' is unknown."}"#;
        assert_eq!(parts(failure), (400, body.to_owned()));
        assert_eq!(parts(OauthErrorCode::TemporarilyUnavailable.because("x")).0, 503);
    }

    #[test]
    fn only_refusals_of_the_store_are_errors_of_the_client() {
        assert!(matches!(OauthFailure::from(Error::invalid("x")), OauthFailure::Refused(_)));
        assert!(matches!(OauthFailure::from(Error::internal("x")), OauthFailure::Server(_)));
        assert_eq!(parts(OauthFailure::from(Error::new(ErrorCode::ResourceExhausted, "x"))).0, 503);
    }
}
