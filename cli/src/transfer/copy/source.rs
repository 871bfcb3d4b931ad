//! The source of a copy.

use std::path::Path;

use embedded_engine::Engine;
use entities::layout;
use key_schema::attributes::LAYOUT;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::Item;
use tokio::task::spawn_blocking;

use super::data_directory::{self, DataDirectory, TableSize};
use super::export_manifest::ExportManifest;
use super::export_reader;
use super::item_batch::{self, BatchReceiver};
use crate::Failure;

/// A table that is copied.
pub(super) enum CopySource {
    /// A table in a data directory.
    Data(Box<DataDirectory>, TableSize),
    /// An export of a table, and that of its access table if users are copied.
    Export(ExportManifest, Option<ExportManifest>),
}

impl CopySource {
    /// Opens a table in a data directory.
    ///
    /// # Errors
    /// The table is missing, empty or in use, or has another layout.
    pub(super) async fn directory(directory: &Path, table: &str) -> Result<(Self, Item), Failure> {
        let data = DataDirectory::open(directory, table).await?;
        if layout::read(&data.table, layout::CURRENT_LAYOUT).await?.is_none() {
            return Err(format!("the table {table} in {} is empty", directory.display()).into());
        }
        let read = data.table.get(&layout::key()).await;
        let setting = supported(read.map_err(|failure| format!("cannot read the table: {failure:?}"))?)?;
        let size = data_directory::size(&data.engine, table).await?;
        Ok((Self::Data(Box::new(data), size), setting))
    }

    /// Opens the export of a table and, if given, that of its access table. Reads both once, to
    /// check that they are complete.
    ///
    /// # Errors
    /// An export is incomplete, or the table has another layout.
    pub(super) async fn export(data: &Path, access: Option<&Path>) -> Result<(Self, Item), Failure> {
        let export = ExportManifest::read(data)?;
        let access = access.map(ExportManifest::read).transpose()?;
        let wanted = [layout::key(), rows::Experiment::key(&ExperimentId::DEFAULT)];
        let [setting, default] = read_once(export.clone(), wanted).await?;
        if let Some(access) = access.clone() {
            let [setting] = read_once(access, [layout::key()]).await?;
            if setting.is_some() {
                return Err("the export given for users is of a data table, not of an access table".into());
            }
        }
        if default.is_none() {
            return Err("the export is not of a table of mlflow-serverless in use".into());
        }
        Ok((Self::Export(export, access), supported(setting)?))
    }

    /// Returns a text that identifies the table and its state. A copy can only be resumed from a
    /// source with the same identity.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Data(data, TableSize { items, bytes }) => {
                let (directory, table) = (data.directory.display(), data.table.name());
                format!("table {table} in {directory} with {items} items of {bytes} bytes")
            }
            Self::Export(export, access) => match access {
                Some(access) => format!("export {} with users of {}", export.arn, access.arn),
                None => format!("export {}", export.arn),
            },
        }
    }

    /// Returns the number of items of the data table.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Data(_, size) => size.items,
            Self::Export(export, _) => export.items,
        }
    }

    /// Starts reading the items of the data table, in an order that is the same each time.
    pub(super) fn items(&self) -> BatchReceiver {
        match self {
            Self::Data(data, _) => read_table(&data.engine, data.table.name()),
            Self::Export(export, _) => read_export(export.clone()),
        }
    }

    /// Starts reading the items of the access table. Returns `None` if the source has no access
    /// table.
    pub(super) async fn access_items(&self) -> Result<Option<BatchReceiver>, Failure> {
        Ok(match self {
            Self::Data(data, _) => data.access().await?.map(|access| read_table(&data.engine, access.name())),
            Self::Export(_, access) => access.clone().map(read_export),
        })
    }
}

fn read_table(engine: &Engine, table: &str) -> BatchReceiver {
    let (sender, receiver) = item_batch::channel();
    let (engine, table) = (engine.clone(), table.to_owned());
    tokio::spawn(async move {
        if let Err(failure) = data_directory::send(&engine, &table, &sender).await {
            // If the receiver was dropped, the failure does not matter any more.
            let _ = sender.send(Err(failure)).await;
        }
    });
    receiver
}

fn read_export(export: ExportManifest) -> BatchReceiver {
    let (sender, receiver) = item_batch::channel();
    spawn_blocking(move || {
        if let Err(failure) = export_reader::send(&export, &sender) {
            // If the receiver was dropped, the failure does not matter any more.
            let _ = sender.blocking_send(Err(failure));
        }
    });
    receiver
}

async fn read_once<const N: usize>(
    export: ExportManifest,
    wanted: [key_schema::Key; N],
) -> Result<[Option<Item>; N], Failure> {
    let found = spawn_blocking(move || export_reader::check(&export, &wanted)).await??;
    found.try_into().map_err(|_| "not all rows were looked for".into())
}

/// Returns the row with the layout, or an error if this version has a different layout.
fn supported(setting: Option<Item>) -> Result<Item, Failure> {
    let setting = setting.ok_or("the source is not a table of mlflow-serverless, or a copy that was not finished")?;
    let (layout, known) = (setting.get(LAYOUT).unwrap_or_default(), layout::CURRENT_LAYOUT);
    match layout {
        layout if layout == known => Ok(setting),
        layout if layout > known => {
            Err(format!("the table has layout {layout}, and this version knows layout {known}: use a later version")
                .into())
        }
        layout => Err(format!("the table has layout {layout}: run `mlflow-serverless migrate` on it first").into()),
    }
}
