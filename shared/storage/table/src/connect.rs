//! Builds clients and tables from the environment of a process.

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::Client;

use crate::{Table, timeouts};

/// Returns a client for [`Table::new`] with the credentials of the environment and without the
/// SDK's retries. It connects to DynamoDB in the environment's region, or to the engine at
/// `endpoint`.
///
/// # Errors
/// The embedded root certificates cannot be read.
pub async fn client(endpoint: Option<String>) -> Result<Client, String> {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts());
    let config = match endpoint {
        Some(endpoint) => config.endpoint_url(endpoint),
        None => config,
    };
    let config = match runtime::https::client()? {
        Some(client) => config.http_client(client),
        None => config,
    };
    Ok(Client::new(&config.load().await))
}

impl Table {
    /// Returns a function's table. `TABLE_NAME` is the table's name, and `DYNAMODB_ENDPOINT`, if
    /// set, is the endpoint of a local engine. Makes no request.
    ///
    /// # Errors
    /// `TABLE_NAME` is not set, or the embedded root certificates cannot be read.
    pub async fn from_environment() -> Result<Self, String> {
        let set = |variable| std::env::var(variable).ok().filter(|value| !value.is_empty());
        let name = set("TABLE_NAME").ok_or("the environment variable TABLE_NAME is not set")?;
        let endpoint = set("DYNAMODB_ENDPOINT");
        let is_in_aws = endpoint.is_none();
        let table = Self::new(client(endpoint).await?, name);
        Ok(if is_in_aws { table.telling_of_full_partitions() } else { table })
    }
}
