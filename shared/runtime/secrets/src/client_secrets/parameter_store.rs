//! Client secrets in Parameter Store.

use std::fmt;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::HttpConnector;
use runtime::aws::{AwsError, AwsService, RetryPolicy, SignedClient, SignedRequest};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use super::client_secret;
use super::error::ClientSecretError;
use crate::secret::Secret;

/// Timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// The parameters below a path of Parameter Store. Each is a `SecureString`.
pub struct ParameterStore {
    path: String,
    client: OnceCell<SignedClient>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GetParameter<'a> {
    name: &'a str,
    with_decryption: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetParameterResponse {
    parameter: Parameter,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    value: String,
}

impl ParameterStore {
    /// Returns the parameters below a path such as `/mlflow/stack/sign-on`. Requests use the region
    /// and the credentials of the environment, which are read at the first request. The endpoint
    /// can be overridden with `AWS_ENDPOINT_URL_SSM`.
    #[must_use]
    pub fn new(path: String) -> Self {
        Self { path, client: OnceCell::new() }
    }

    /// Returns parameters whose requests are sent over a connector, for tests.
    #[must_use]
    pub fn over(path: &str, connector: impl HttpConnector + 'static) -> Self {
        let client = SignedClient::over(AwsService::Ssm, connector);
        Self { path: path.to_owned(), client: OnceCell::new_with(Some(client)) }
    }

    /// Reads the parameter of a provider. Takes one request.
    pub(super) async fn read(&self, provider: &str) -> Result<Secret, ClientSecretError> {
        let name = format!("{}/{provider}", self.path);
        let unavailable =
            |error: AwsError| ClientSecretError::Unavailable { place: name.clone(), cause: error.to_string() };
        let malformed = |_| ClientSecretError::Unavailable {
            place: name.clone(),
            cause: "Parameter Store sent a malformed response".to_owned(),
        };
        let client = self.client.get_or_try_init(|| SignedClient::from_environment(AwsService::Ssm)).await;
        let body = serde_json::to_vec(&GetParameter { name: &name, with_decryption: true }).map_err(malformed)?;
        let headers = [
            ("content-type", "application/x-amz-json-1.1".to_owned()),
            ("x-amz-target", "AmazonSSM.GetParameter".to_owned()),
        ];
        let request = SignedRequest {
            path: "/",
            headers: &headers,
            body: body.into(),
            timeout: ATTEMPT_TIMEOUT,
            retry: RetryPolicy::Idempotent,
        };
        let response = match client.map_err(unavailable)?.send(&request).await {
            Err(error) if error.code() == Some("ParameterNotFound") => {
                return Err(ClientSecretError::Missing { place: name });
            }
            response => response.map_err(unavailable)?,
        };
        let found: GetParameterResponse = serde_json::from_slice(&response.body).map_err(malformed)?;
        let value = Zeroizing::new(found.parameter.value);
        client_secret(value.as_bytes(), || name.clone())
    }
}

impl fmt::Debug for ParameterStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParameterStore").field("path", &self.path).finish_non_exhaustive()
    }
}
