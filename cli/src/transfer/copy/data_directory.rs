//! A table in a data directory, as the source of a copy.

use std::path::{Path, PathBuf};

use embedded_engine::{Engine, StreamReader};
use serde_json::{Value as Json, json};
use table::Table;

use super::dynamodb_json;
use super::item_batch::{BatchSender, ItemBatch};
use crate::Failure;
use crate::feed;
use crate::table_options::access_name;

/// A table in a data directory that no server uses.
pub(super) struct DataDirectory {
    pub(super) engine: Engine,
    pub(super) directory: PathBuf,
    pub(super) table: Table,
    /// Keeps servers from indexing the table while it is read.
    _stream: StreamReader,
}

/// The size of a table, by which a resumed copy recognizes that its source is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableSize {
    pub(super) items: u64,
    pub(super) bytes: u64,
}

impl DataDirectory {
    /// Opens a directory that has data.
    ///
    /// # Errors
    /// The directory or the table is missing, or a server is using it.
    pub(super) async fn open(directory: &Path, table: &str) -> Result<Self, Failure> {
        if !Engine::is_in(directory) {
            return Err(format!("there is no data in {}", directory.display()).into());
        }
        let engine = Engine::open(directory).map_err(|error| format!("cannot open the data: {error}"))?;
        let directory = directory.canonicalize()?;
        let table = Table::new(engine.client(), table);
        if !table.is_there().await.map_err(|failure| format!("cannot read the table: {failure:?}"))? {
            return Err(format!("there is no table {} in {}", table.name(), directory.display()).into());
        }
        let stream = claim(&engine, &table, &directory).await?;
        Ok(Self { engine, directory, table, _stream: stream })
    }

    /// Returns the access table, or `None` if there is none.
    pub(super) async fn access(&self) -> Result<Option<Table>, Failure> {
        let access = self.table.beside(access_name(self.table.name()));
        let is_there =
            access.is_there().await.map_err(|failure| format!("cannot read the access table: {failure:?}"))?;
        Ok(is_there.then_some(access))
    }
}

/// Claims the stream of a table in a directory, so that no server indexes the table.
///
/// # Errors
/// A server is using the table.
pub(super) async fn claim(engine: &Engine, table: &Table, directory: &Path) -> Result<StreamReader, Failure> {
    let claimed = feed::open_stream(engine, table.name()).await;
    claimed.map_err(|error| format!("cannot open the stream of {}: {error}", table.name()))?.ok_or_else(|| {
        format!("another process uses the data in {}: stop the server, and try again", directory.display()).into()
    })
}

/// Returns the size of a table.
pub(super) async fn size(engine: &Engine, table: &str) -> Result<TableSize, Failure> {
    let described = engine.call("DescribeTable", json!({ "TableName": table })).await;
    let described = described.map_err(|error| format!("cannot describe the table {table}: {error}"))?;
    let number = |name: &str| described["Table"][name].as_u64().unwrap_or_default();
    Ok(TableSize { items: number("ItemCount"), bytes: number("TableSizeBytes") })
}

/// Sends all items of a table, in an order that is the same each time. Returns early if the
/// receiver was dropped.
///
/// # Errors
/// The table cannot be read.
pub(super) async fn send(engine: &Engine, table: &str, to: &BatchSender) -> Result<(), Failure> {
    let (mut batch, mut start) = (ItemBatch::default(), Json::Null);
    loop {
        let page = engine.items_page(table, start).await;
        let (items, next) = page.map_err(|error| format!("cannot read the table {table}: {error}"))?;
        for json in items {
            let item = dynamodb_json::item(json).ok_or("the engine has an item of an unknown form")?;
            if let Some(full) = batch.add(item)
                && to.send(Ok(full)).await.is_err()
            {
                return Ok(());
            }
        }
        match next {
            Some(next) => start = next,
            None => break,
        }
    }
    // If the receiver was dropped, no items are needed any more.
    let _ = to.send(Ok(batch.rest())).await;
    Ok(())
}
