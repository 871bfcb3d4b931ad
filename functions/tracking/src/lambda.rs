//! What a cold start prepares, from the function's environment.

use table::{Table, timeouts};

use crate::store::Store;

/// Connects to the table that `TABLE_NAME` names; `DYNAMODB_ENDPOINT` names an engine other than AWS's. `ARTIFACT_ROOT` is where
/// experiments keep their artifacts. Makes the first request, so that the connection stands before the first call.
///
/// # Errors
/// A variable is missing, or the table cannot be reached.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let table_name = variable("TABLE_NAME")?;
    let artifact_root = variable("ARTIFACT_ROOT")?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .retry_config(aws_config::retry::RetryConfig::disabled())
        .timeout_config(timeouts());
    let config = match std::env::var("DYNAMODB_ENDPOINT") {
        Ok(endpoint) => config.endpoint_url(endpoint).load().await,
        Err(_) => config.load().await,
    };
    let store = Store::new(Table::new(aws_sdk_dynamodb::Client::new(&config), table_name), &artifact_root);
    store.experiment_create_default().await?;
    Ok(store)
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
}
