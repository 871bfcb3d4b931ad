//! Requests to archive the traces of an experiment at once. The request itself is the experiment's
//! tag `mlflow.trace.archiveNow`. A row lists the experiments that may have the tag, so that they are
//! found without reading all experiments.

use key_schema::attributes::CREATED;
use key_schema::rows;
use mlflow_api::{ExperimentId, Result};
use runtime::clock::now_ms;
use table::{Condition, Failure, Item, Query, Table, number};

use crate::read_all;

/// A row of an experiment that may have the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRequest {
    /// The experiment.
    pub experiment: ExperimentId,
    /// When the row was written last, in ms.
    pub created: i64,
}

impl ArchiveRequest {
    /// Lists an experiment. Must be called before the experiment gets the tag. Takes one request and
    /// one write unit.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn announce(table: &Table, experiment: ExperimentId) -> Result<()> {
        let item = Item::new(rows::ArchiveRequest::key(&experiment)).with(CREATED, number(now_ms()));
        Ok(table.put(item, &Condition::Always).await?)
    }

    /// Returns all rows. Takes one request, and one more per MB.
    ///
    /// # Errors
    /// Returns failures of the table, and an internal error if a row cannot be read.
    pub async fn all(table: &Table) -> Result<Vec<Self>> {
        let items = table.query(Query::of(rows::ArchiveRequest::all())).await?;
        read_all(&items, "a request to archive traces", |item| {
            let row = rows::ArchiveRequest::parse(&item.key()?)?;
            Some(Self { experiment: row.experiment, created: item.get(CREATED)? })
        })
    }

    /// Deletes the row, unless it was written again since it was read. Takes one request and one
    /// write unit.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn finish(self, table: &Table) -> Result<()> {
        let is_as_read = Condition::Equals(CREATED.into(), number(self.created));
        match table.delete(&rows::ArchiveRequest::key(&self.experiment), &is_as_read).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}
