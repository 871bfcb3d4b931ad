//! From command line options to the table.

use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::Client;
use clap::Args;
use embedded_engine::Engine;
use table::Table;

use crate::Failure;

/// Where the data is.
#[derive(Args)]
pub(crate) struct Storage {
    /// Keep the data in this directory.
    #[arg(long, value_name = "DIR", default_value = "mlflow-data", conflicts_with = "memory")]
    data: PathBuf,
    /// Keep the data in memory, until the server stops.
    #[arg(long)]
    memory: bool,
}

impl Storage {
    /// The embedded engine over it.
    pub(crate) fn open(&self) -> Result<Engine, Failure> {
        let engine = if self.memory { Engine::memory() } else { Engine::open(&self.data) };
        engine.map_err(|error| format!("the data cannot be opened: {error}").into())
    }

    /// Where artifacts go unless told otherwise: beside the data, where a client on this machine can write them.
    pub(crate) fn artifact_root(&self) -> Result<String, Failure> {
        let directory = if self.memory { Path::new("mlflow-data") } else { &self.data };
        let absolute = std::path::absolute(directory.join("artifacts"))?;
        absolute.to_str().map(str::to_owned).ok_or_else(|| "the data directory's name is no valid text".into())
    }
}

/// A client for an engine elsewhere: with the environment's credentials, or with any where there are none.
pub(crate) async fn client_for(endpoint: &str) -> Client {
    if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        return embedded_engine::client_for_endpoint(endpoint);
    }
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .retry_config(aws_config::retry::RetryConfig::disabled())
        .timeout_config(table::timeouts());
    Client::new(&config.load().await)
}

/// The table, made where it is missing.
pub(crate) async fn table(client: Client, name: &str) -> Result<Table, Failure> {
    let table = Table::new(client, name);
    match table.create_if_missing().await {
        Ok(()) => Ok(table),
        Err(failure) => Err(format!("the table {name} cannot be made: {failure:?}").into()),
    }
}
