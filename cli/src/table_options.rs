//! Command line options that select the table.

use std::path::{Path, PathBuf};

use artifact_store::{Archive, ArtifactStore};
use clap::Args;
use embedded_engine::Engine;
use entities::layout;
use table::Table;

use crate::Failure;
use crate::dynamodb_endpoint::DynamoDbEndpoint;
use crate::feed::StreamClient;

/// Options for the location of the data.
#[derive(Args)]
pub(crate) struct StorageOptions {
    /// Store the data in this directory.
    #[arg(long, value_name = "DIR", default_value = "mlflow-data", conflicts_with = "memory")]
    data: PathBuf,
    /// Keep the data in memory. It is lost when the server stops.
    #[arg(long)]
    memory: bool,
}

impl StorageOptions {
    /// Opens the embedded engine over this storage.
    pub(crate) fn open(&self) -> Result<Engine, Failure> {
        let engine = if self.memory { Engine::memory() } else { Engine::open(&self.data) };
        engine.map_err(|error| format!("cannot open the data: {error}").into())
    }

    /// Returns the directory of the data.
    pub(crate) fn directory(&self) -> &Path {
        &self.data
    }

    /// Returns the default directory of artifacts, next to the data.
    pub(crate) fn artifacts(&self) -> std::io::Result<PathBuf> {
        let directory = if self.memory { Path::new("mlflow-data") } else { &self.data };
        std::path::absolute(directory.join("artifacts"))
    }

    /// Returns the archive in the default directory of artifacts, for commands that have no option for
    /// artifacts. If the archive is elsewhere, archived spans stay as they are.
    pub(crate) fn archive(&self) -> std::io::Result<Archive> {
        Ok(Archive::new(ArtifactStore::in_directory(&self.artifacts()?)))
    }
}

/// Options that select the table of a command: a table of the embedded engine, or of another
/// server.
#[derive(Args)]
pub(crate) struct TableOptions {
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    /// Use the server at this URL instead of the embedded engine: DynamoDB itself, or another
    /// implementation of its protocol.
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "memory"])]
    dynamodb_endpoint: Option<DynamoDbEndpoint>,
    /// Name of the table.
    #[arg(long = "table", value_name = "TABLE", default_value = "mlflow", value_parser = table_name)]
    pub(crate) name: String,
    /// Name of the access table [default: the name of the table, followed by `-access`].
    #[arg(long, value_name = "TABLE", value_parser = table_name)]
    access_table: Option<String>,
}

impl TableOptions {
    /// Returns the table, which may not exist yet, and the embedded engine if the table belongs to
    /// it.
    pub(crate) async fn connect(&self) -> Result<(Table, Option<Engine>), Failure> {
        if let Some(endpoint) = &self.dynamodb_endpoint {
            return Ok((Table::new(endpoint.client().await?, &self.name), None));
        }
        let engine = self.storage.open()?;
        Ok((Table::new(engine.client(), &self.name), Some(engine)))
    }

    /// Checks that the table is not in the embedded engine in this directory.
    ///
    /// # Errors
    /// The table is in this directory.
    pub(crate) fn check_is_not_in(&self, directory: &Path) -> Result<(), Failure> {
        let is_local = self.dynamodb_endpoint.is_none() && !self.storage.memory;
        let (Ok(one), Ok(other)) = (directory.canonicalize(), self.storage.data.canonicalize()) else { return Ok(()) };
        if is_local && one == other {
            return Err(
                format!("the table would be copied within {}: give --data another directory", one.display()).into()
            );
        }
        Ok(())
    }

    /// Returns a client for the table's stream, or `None` if the table belongs to the embedded
    /// engine.
    ///
    /// # Errors
    /// No credentials are available.
    pub(crate) async fn stream(&self) -> Result<Option<StreamClient>, Failure> {
        match &self.dynamodb_endpoint {
            Some(endpoint) => endpoint.stream(&self.name).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the access table that belongs to the table. It may not exist yet.
    pub(crate) fn access_table(&self, table: &Table) -> Table {
        table.beside(self.access_table.clone().unwrap_or_else(|| access_name(&self.name)))
    }

    /// Creates the access table if it is missing. If the table is on another machine, this function
    /// creates it only if `is_wanted` is set.
    ///
    /// # Errors
    /// The table is missing, or cannot be created.
    pub(crate) async fn create_access(&self, access: &Table, is_wanted: bool) -> Result<(), Failure> {
        if let Some(endpoint) = self.dynamodb_endpoint.as_ref().filter(|endpoint| !endpoint.is_here() && !is_wanted) {
            let is_there = access.is_there().await;
            if !is_there.map_err(|failure| format!("cannot check for the table at {}: {failure:?}", endpoint.url))? {
                return Err(format!("there is no table {} at {}", access.name(), endpoint.url).into());
            }
            return Ok(());
        }
        create_access(access).await
    }

    /// Creates the table if it is missing, and returns whether it is in use already. On another
    /// machine, the table must already exist, unless `is_wanted` is set. Otherwise, a mistyped name
    /// would create a table without any protection against data loss.
    ///
    /// # Errors
    /// The table is missing, cannot be created, or was written by a later version.
    pub(crate) async fn create(&self, table: &Table, is_wanted: bool) -> Result<bool, Failure> {
        if let Some(endpoint) = self.dynamodb_endpoint.as_ref().filter(|endpoint| !endpoint.is_here() && !is_wanted) {
            let is_there = table.is_there().await;
            if !is_there.map_err(|failure| format!("cannot check for the table at {}: {failure:?}", endpoint.url))? {
                return Err(format!(
                    "there is no table {} at {}. --create-table creates it, without the point-in-time recovery and deletion \
                     protection that the table of a stack has",
                    self.name, endpoint.url
                )
                .into());
            }
        }
        create(table).await
    }
}

/// Creates the table if it is missing, and returns whether it is in use already.
///
/// # Errors
/// The table cannot be created, or was written by a later version.
pub(crate) async fn create(table: &Table) -> Result<bool, Failure> {
    table.create_if_missing().await.map_err(|failure| format!("cannot create the table: {failure:?}"))?;
    Ok(layout::check(table).await?)
}

/// Returns the default name of the access table for a table.
pub(crate) fn access_name(table: &str) -> String {
    format!("{table}-access")
}

/// Creates the access table if it is missing.
///
/// # Errors
/// The table cannot be created.
pub(crate) async fn create_access(access: &Table) -> Result<(), Failure> {
    let made = access.create_access_if_missing().await;
    made.map_err(|failure| format!("cannot create the access table: {failure:?}").into())
}

/// Validates a table name by the rules of `TableName` in DynamoDB's API.
pub(crate) fn table_name(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if (3..=255).contains(&text.len()) && text.bytes().all(is_name) {
        return Ok(text.to_owned());
    }
    Err("a table name has 3 to 255 letters, digits, hyphens, dots and underscores".to_owned())
}
