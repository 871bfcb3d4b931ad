//! A key of KMS.

use std::fmt;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::HttpConnector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::aws::{AwsError, AwsService, RetryPolicy, SignedClient, SignedRequest};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use crate::context::SecretContext;
use crate::envelope::{KEY_BYTES, Key};
use crate::error::SecretError;

/// Timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// A symmetric key of KMS, which never leaves KMS. It wraps data keys.
pub struct KmsKey {
    id: String,
    client: OnceCell<SignedClient>,
}

/// The context as KMS authenticates and logs it. The names can be used in conditions of policies, as
/// `kms:EncryptionContext:purpose`.
#[derive(Serialize)]
struct EncryptionContext<'a> {
    owner: &'a str,
    purpose: &'a str,
    workspace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GenerateDataKey<'a> {
    key_id: &'a str,
    key_spec: &'static str,
    encryption_context: EncryptionContext<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataKey {
    ciphertext_blob: String,
    plaintext: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypt<'a> {
    key_id: &'a str,
    ciphertext_blob: String,
    encryption_context: EncryptionContext<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypted {
    plaintext: String,
}

impl KmsKey {
    /// Returns a key by its ARN. Its requests use the region and the credentials of the
    /// environment, which are read at the first request. The endpoint can be overridden with
    /// `AWS_ENDPOINT_URL_KMS`.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self { id, client: OnceCell::new() }
    }

    /// Returns a key whose requests are sent over a connector, for tests.
    #[must_use]
    pub fn over(id: &str, connector: impl HttpConnector + 'static) -> Self {
        let client = SignedClient::over(AwsService::Kms, connector);
        Self { id: id.to_owned(), client: OnceCell::new_with(Some(client)) }
    }

    /// Returns a new data key, and the same key wrapped.
    pub(crate) async fn data_key(&self, context: &SecretContext<'_>) -> Result<(Key, Vec<u8>), SecretError> {
        let request = GenerateDataKey { key_id: &self.id, key_spec: "AES_256", encryption_context: of(context) };
        let DataKey { ciphertext_blob, plaintext } = self.send("GenerateDataKey", &request).await?;
        let plaintext = Zeroizing::new(plaintext);
        let wrapped = STANDARD.decode(ciphertext_blob).map_err(|_| malformed())?;
        Ok((key(&plaintext)?, wrapped))
    }

    /// Unwraps a data key.
    pub(crate) async fn unwrap(&self, wrapped: &[u8], context: &SecretContext<'_>) -> Result<Key, SecretError> {
        let ciphertext_blob = STANDARD.encode(wrapped);
        let request = Decrypt { key_id: &self.id, ciphertext_blob, encryption_context: of(context) };
        let Decrypted { plaintext } = self.send("Decrypt", &request).await?;
        key(&Zeroizing::new(plaintext))
    }

    async fn send<T: for<'de> Deserialize<'de>>(
        &self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<T, SecretError> {
        let client = self.client.get_or_try_init(|| SignedClient::from_environment(AwsService::Kms)).await;
        let body = serde_json::to_vec(request).map_err(|_| SecretError::Encryption)?;
        let headers = [
            ("content-type", "application/x-amz-json-1.1".to_owned()),
            ("x-amz-target", format!("TrentService.{operation}")),
        ];
        let request = SignedRequest {
            path: "/",
            headers: &headers,
            body: body.into(),
            timeout: ATTEMPT_TIMEOUT,
            retry: RetryPolicy::Idempotent,
        };
        let response =
            client.map_err(|error| failure(&error))?.send(&request).await.map_err(|error| failure(&error))?;
        serde_json::from_slice(&response.body).map_err(|_| malformed())
    }
}

fn of<'a>(context: &SecretContext<'a>) -> EncryptionContext<'a> {
    EncryptionContext { owner: context.owner, purpose: context.purpose, workspace: context.workspace }
}

fn key(plaintext: &str) -> Result<Key, SecretError> {
    let decoded = Zeroizing::new(STANDARD.decode(plaintext).map_err(|_| malformed())?);
    let key = <[u8; KEY_BYTES]>::try_from(decoded.as_slice()).map_err(|_| malformed())?;
    Ok(Key::new(key))
}

fn malformed() -> SecretError {
    SecretError::KeyUnavailable("KMS sent a malformed response".to_owned())
}

/// Classifies an error of KMS. It responds with `InvalidCiphertextException` if the wrapped key was
/// changed, or the context is not the one it was wrapped with.
fn failure(error: &AwsError) -> SecretError {
    match error.code() {
        Some("InvalidCiphertextException") => SecretError::Tampered,
        _ => SecretError::KeyUnavailable(error.to_string()),
    }
}

impl fmt::Debug for KmsKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KmsKey").field("id", &self.id).finish_non_exhaustive()
    }
}
