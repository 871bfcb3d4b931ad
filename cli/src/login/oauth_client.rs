//! Requests to the OAuth endpoints of a server.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::credentials::with_causes;
use crate::login::server_url::ServerUrl;

/// Maximum time until the response to a request is complete. Longer than the timeout of API Gateway.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Path of the token endpoint.
const TOKEN_PATH: &str = "/oauth/token";

/// A token that the server has issued.
#[derive(Deserialize)]
pub(crate) struct IssuedToken {
    pub(crate) access_token: String,
    /// Lifetime in seconds.
    pub(crate) expires_in: i64,
    /// Name of the user.
    pub(crate) username: String,
}

/// An error of an OAuth endpoint.
#[derive(Deserialize)]
pub(crate) struct OauthRefusal {
    /// The code, such as `authorization_pending`.
    pub(crate) error: String,
    #[serde(default)]
    error_description: String,
}

/// A client of a server's OAuth endpoints.
pub(crate) struct OauthClient {
    server: ServerUrl,
    connector: SharedHttpConnector,
}

impl OauthRefusal {
    /// Returns the failure of the login.
    pub(crate) fn failure(&self) -> Failure {
        match (self.error.as_str(), self.error_description.as_str()) {
            (code, "") => format!("the server refused the login: {code}").into(),
            (_, description) => description.into(),
        }
    }
}

impl OauthClient {
    /// Creates a client.
    ///
    /// # Errors
    /// Returns an error if the root certificates cannot be read.
    pub(crate) fn new(server: ServerUrl) -> Result<Self, Failure> {
        Ok(Self { server, connector: runtime::https::connector()? })
    }

    /// Returns the server.
    pub(crate) fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Checks that the server has users who can log in.
    ///
    /// # Errors
    /// Returns an error if it does not, or cannot be reached.
    pub(crate) async fn check_server(&self) -> Result<(), Failure> {
        // A request without parameters is refused with `invalid_request`.
        self.token(&[]).await.map(drop)
    }

    /// Requests a token.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or has no token endpoint.
    pub(crate) async fn token(&self, form: &[(&str, &str)]) -> Result<Result<IssuedToken, OauthRefusal>, Failure> {
        self.post(TOKEN_PATH, form).await
    }

    /// Sends a form to an endpoint.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or does not have the endpoint.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        form: &[(&str, &str)],
    ) -> Result<Result<T, OauthRefusal>, Failure> {
        let pairs: Vec<_> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let body = pairs.join("&");
        let request = http::Request::post(format!("{}{path}", self.server))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(CONTENT_LENGTH, body.len())
            .body(SdkBody::from(body))?;
        let (status, body) = self.send(request).await?;
        if status == 200 {
            return Ok(Ok(serde_json::from_slice(&body).map_err(|_| self.not_supported(status))?));
        }
        serde_json::from_slice(&body).map(Err).map_err(|_| self.not_supported(status))
    }

    /// Returns whether the server refuses a token. If the server cannot be reached, returns `false`.
    pub(crate) async fn refuses(&self, token: &str) -> bool {
        let request = http::Request::get(format!("{}/api/2.0/mlflow/users/current", self.server))
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .body(SdkBody::empty());
        match request {
            Ok(request) => self.send(request).await.is_ok_and(|(status, _)| status == 401),
            // The token in the file contains characters that no token has.
            Err(_) => true,
        }
    }

    async fn send(&self, request: http::Request<SdkBody>) -> Result<(u16, Vec<u8>), Failure> {
        let request = HttpRequest::try_from(request)?;
        let exchange = async {
            let response = self.connector.call(request).await.map_err(|error| self.unreachable(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
            let body = body.map_err(|error| self.unreachable(&*error))?;
            Ok((status, body.to_bytes().to_vec()))
        };
        tokio::time::timeout(RESPONSE_TIMEOUT, exchange)
            .await
            .map_err(|_| format!("{} did not respond within {} seconds", self.server, RESPONSE_TIMEOUT.as_secs()))?
    }

    fn unreachable(&self, error: &dyn std::error::Error) -> Failure {
        format!("cannot reach {}: {}", self.server, with_causes(error)).into()
    }

    fn not_supported(&self, status: u16) -> Failure {
        format!(
            "{} has no logins (status {status}). They require a server with users: in AWS, use the URL in the output UsersUri of the stack",
            self.server
        )
        .into()
    }
}

/// Encodes a parameter of a form or query.
pub(crate) fn encoded(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()
}
