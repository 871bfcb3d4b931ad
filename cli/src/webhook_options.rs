//! Options of `serve` for webhooks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use deliver::{Deliverer, LocalDeliverer, OutboundSender};
use outbound::{OutboundClient, OutboundPolicy, Schemes};
use secrets::{KeyFile, SecretKeys};
use table::Table;

use crate::Failure;

/// Options for webhooks.
#[derive(Args)]
pub(crate) struct WebhookOptions {
    /// File with the key that encrypts the secrets of webhooks. It is created if it does not exist,
    /// and only its owner may have access to it. Without it, webhooks cannot have secrets.
    #[arg(long, value_name = "FILE")]
    secrets_key: Option<PathBuf>,
    /// Allow webhooks with `http` URLs, whose events are sent without encryption.
    #[arg(long)]
    webhooks_allow_http: bool,
    /// Allow webhooks with addresses of this machine and of private networks. Administrators can
    /// then send requests to services that only this machine reaches.
    #[arg(long)]
    webhooks_allow_private_addresses: bool,
}

/// The parts of `serve` that handle webhooks: the keys of secrets, the policy for outbound
/// requests, and the deliverer of events.
pub(crate) struct LocalWebhooks {
    pub(crate) keys: Arc<SecretKeys>,
    pub(crate) policy: OutboundPolicy,
    pub(crate) deliverer: Arc<LocalDeliverer>,
}

impl WebhookOptions {
    /// Opens the key file, and creates the function that delivers events.
    pub(crate) fn open(&self, table: &Table) -> Result<LocalWebhooks, Failure> {
        let keys = match &self.secrets_key {
            None => SecretKeys::None,
            Some(path) => open_key_file(path)?,
        };
        let keys = Arc::new(keys);
        let policy = OutboundPolicy {
            schemes: if self.webhooks_allow_http { Schemes::HttpsAndHttp } else { Schemes::Https },
            allow_private_peers: self.webhooks_allow_private_addresses,
        };
        let sender = Arc::new(OutboundSender(OutboundClient::new(policy)));
        let deliverer = Deliverer::new(table.clone(), sender, Arc::clone(&keys));
        Ok(LocalWebhooks { keys, policy, deliverer: Arc::new(LocalDeliverer::new(deliverer)) })
    }
}

/// Opens the key file at a path, and creates it if it does not exist.
///
/// # Errors
/// The file cannot be read or created, is not a key, or is accessible to other users.
pub(crate) fn open_key_file(path: &Path) -> Result<SecretKeys, Failure> {
    if path.exists() {
        return Ok(SecretKeys::File(KeyFile::read(path)?));
    }
    let key = KeyFile::create(path)?;
    tracing::warn!(path = %path.display(), "created a key file: back it up, because secrets are lost without it");
    Ok(SecretKeys::File(key))
}
