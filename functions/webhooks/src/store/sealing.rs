//! Seals the secrets of webhooks.

use entities::webhooks::WEBHOOK_SECRET_PURPOSE;
use mlflow_api::webhooks::check_secret;
use mlflow_api::{Error, Result, WebhookId, Workspace};
use secrets::{Secret, SecretContext, SecretError};

use super::Store;

impl Store {
    /// Seals a secret of a webhook, bound to the webhook and its workspace. Takes one request to
    /// KMS in AWS. Returns `None` for an empty secret, which stands for no secret.
    pub(super) async fn sealed(&self, workspace: &Workspace, id: WebhookId, secret: &str) -> Result<Option<Vec<u8>>> {
        check_secret(secret)?;
        if secret.is_empty() {
            return Ok(None);
        }
        let id = id.to_string();
        let context = SecretContext { purpose: WEBHOOK_SECRET_PURPOSE, workspace: workspace.as_str(), owner: &id };
        let sealed = self.keys.seal(&Secret::from(secret.to_owned()), &context).await;
        let sealed = sealed.map_err(|error| match error {
            SecretError::NotConfigured => Error::invalid(
                "This server cannot store the secrets of webhooks, because it has no key to encrypt them with. In AWS, \
                 set the stack's parameter SecretsKey. On a local server, start `serve` with --secrets-key.",
            ),
            other => Error::unavailable(other),
        });
        Ok(Some(sealed?.into_bytes()))
    }
}
