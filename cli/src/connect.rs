//! From command line options to the table.

use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::Client;
use clap::Args;
use embedded_engine::Engine;
use entities::layout;
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

    /// Where the server keeps artifacts unless told otherwise: beside the data.
    pub(crate) fn artifacts(&self) -> std::io::Result<PathBuf> {
        let directory = if self.memory { Path::new("mlflow-data") } else { &self.data };
        std::path::absolute(directory.join("artifacts"))
    }
}

/// The table a command works on: the embedded engine's, or one elsewhere.
#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) storage: Storage,
    /// Use the engine at this URL, DynamoDB itself or another that speaks its protocol, in place of the embedded one.
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "memory"])]
    dynamodb_endpoint: Option<String>,
    /// Name of the table.
    #[arg(long = "table", value_name = "TABLE", default_value = "mlflow")]
    pub(crate) name: String,
}

impl Place {
    /// The table, whether it is there or not; and the embedded engine, if it is that one's.
    pub(crate) async fn connect(&self) -> Result<(Table, Option<Engine>), Failure> {
        if let Some(endpoint) = &self.dynamodb_endpoint {
            return Ok((Table::new(client_for(endpoint).await, &self.name), None));
        }
        let engine = self.storage.open()?;
        Ok((Table::new(engine.client(), &self.name), Some(engine)))
    }
}

/// A client for an engine elsewhere: with the environment's credentials, or with any where there are none.
async fn client_for(endpoint: &str) -> Client {
    if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        return embedded_engine::client_for_endpoint(endpoint);
    }
    table::client(Some(endpoint.to_owned())).await
}

/// Makes the table where it is missing, and says whether it is in use already.
///
/// # Errors
/// It cannot be made, or was written by another version.
pub(crate) async fn create(table: &Table) -> Result<bool, Failure> {
    table.create_if_missing().await.map_err(|failure| format!("the table cannot be made: {failure:?}"))?;
    Ok(layout::check(table).await?)
}
