//! What a cold start prepares, from the function's environment.

use table::{Table, timeouts};

use crate::Indexer;

/// Connects to the table that `TABLE_NAME` names; `DYNAMODB_ENDPOINT` names an engine other than AWS's.
///
/// # Errors
/// A variable is missing.
pub async fn indexer_from_environment() -> Result<Indexer, Box<dyn std::error::Error + Send + Sync>> {
    let table_name = std::env::var("TABLE_NAME").map_err(|_| "the environment variable TABLE_NAME is not set")?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .retry_config(aws_config::retry::RetryConfig::disabled())
        .timeout_config(timeouts());
    let config = match std::env::var("DYNAMODB_ENDPOINT") {
        Ok(endpoint) => config.endpoint_url(endpoint).load().await,
        Err(_) => config.load().await,
    };
    Ok(Indexer::new(Table::new(aws_sdk_dynamodb::Client::new(&config), table_name)))
}
