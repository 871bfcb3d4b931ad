//! From command line options to the table.

use std::path::{Path, PathBuf};

use clap::Args;
use embedded_engine::Engine;
use entities::layout;
use table::Table;

use crate::Failure;
use crate::endpoint::Endpoint;
use crate::feed::StreamRequests;

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

    /// The directory for artifacts, unless another is chosen: next to the data.
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
    dynamodb_endpoint: Option<Endpoint>,
    /// Name of the table.
    #[arg(long = "table", value_name = "TABLE", default_value = "mlflow", value_parser = table_name)]
    pub(crate) name: String,
    /// Name of the table of access [default: the name of the table, followed by `-access`].
    #[arg(long, value_name = "TABLE", value_parser = table_name)]
    access_table: Option<String>,
}

impl Place {
    /// The table, whether it is there or not; and the embedded engine, if it is that one's.
    pub(crate) async fn connect(&self) -> Result<(Table, Option<Engine>), Failure> {
        if let Some(endpoint) = &self.dynamodb_endpoint {
            return Ok((Table::new(endpoint.client().await?, &self.name), None));
        }
        let engine = self.storage.open()?;
        Ok((Table::new(engine.client(), &self.name), Some(engine)))
    }

    /// Requests to the stream of the table, if it is elsewhere.
    ///
    /// # Errors
    /// There are no credentials for it.
    pub(crate) async fn stream(&self) -> Result<Option<StreamRequests>, Failure> {
        match &self.dynamodb_endpoint {
            Some(endpoint) => endpoint.stream(&self.name).await.map(Some),
            None => Ok(None),
        }
    }

    /// The table of access that belongs to the table, whether it exists or not.
    pub(crate) fn access_table(&self, table: &Table) -> Table {
        table.beside(self.access_table.clone().unwrap_or_else(|| access_name(&self.name)))
    }

    /// Makes the table of access where it is missing. On another machine it has to be there, unless it is asked for.
    ///
    /// # Errors
    /// It is missing, or cannot be made.
    pub(crate) async fn create_access(&self, access: &Table, is_wanted: bool) -> Result<(), Failure> {
        if let Some(endpoint) = self.dynamodb_endpoint.as_ref().filter(|endpoint| !endpoint.is_here() && !is_wanted) {
            let is_there = access.is_there().await;
            if !is_there.map_err(|failure| format!("{} cannot be asked for the table: {failure:?}", endpoint.url))? {
                return Err(format!("there is no table {} at {}", access.name(), endpoint.url).into());
            }
            return Ok(());
        }
        create_access(access).await
    }

    /// Makes the table where it is missing, and says whether it is in use already. On another machine it has to be there, unless it is
    /// asked for (`is_wanted`): a name that was mistyped would become a table that nothing keeps from being lost.
    ///
    /// # Errors
    /// It is missing, cannot be made, or was written by a later version.
    pub(crate) async fn create(&self, table: &Table, is_wanted: bool) -> Result<bool, Failure> {
        if let Some(endpoint) = self.dynamodb_endpoint.as_ref().filter(|endpoint| !endpoint.is_here() && !is_wanted) {
            let is_there = table.is_there().await;
            if !is_there.map_err(|failure| format!("{} cannot be asked for the table: {failure:?}", endpoint.url))? {
                return Err(format!(
                    "there is no table {} at {}. With --create-table it is made, without point-in-time recovery and without \
                     protection against deletion, which the table of a stack has",
                    self.name, endpoint.url
                )
                .into());
            }
        }
        create(table).await
    }
}

/// Makes the table where it is missing, and says whether it is in use already.
///
/// # Errors
/// It cannot be made, or was written by a later version.
pub(crate) async fn create(table: &Table) -> Result<bool, Failure> {
    table.create_if_missing().await.map_err(|failure| format!("the table cannot be made: {failure:?}"))?;
    Ok(layout::check(table).await?)
}

/// The name of the table of access that belongs to a table.
pub(crate) fn access_name(table: &str) -> String {
    format!("{table}-access")
}

/// Makes the table of access where it is missing.
///
/// # Errors
/// It cannot be made.
pub(crate) async fn create_access(access: &Table) -> Result<(), Failure> {
    let made = access.create_access_if_missing().await;
    made.map_err(|failure| format!("the table of access cannot be made: {failure:?}").into())
}

/// A name that a table may have (`TableName` of DynamoDB's API).
pub(crate) fn table_name(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if (3..=255).contains(&text.len()) && text.bytes().all(is_name) {
        return Ok(text.to_owned());
    }
    Err("a table's name has 3 to 255 letters, digits, hyphens, dots and underscores".to_owned())
}
