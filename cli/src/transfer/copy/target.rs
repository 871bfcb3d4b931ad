//! The table that a copy writes.
//!
//! A copy claims an empty table by writing a row that identifies the source, together with the row
//! of the default experiment. Servers refuse a table that has the default experiment but no layout.
//! The layout is written last, in the transaction that deletes the claim.

use entities::attributes::{FROM, LAST_NUMBER};
use entities::layout::{self, LayoutError};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Condition, Failure as TableFailure, Item, Table, Update, Write, number, text};

use crate::Failure;
use crate::transfer::import::TableWriter;

/// Number of concurrent requests for single items.
const CONCURRENCY: usize = 16;
/// Value of the progress in the claim when only items with a mark for the indexer are missing.
const ONLY_MARKED: i64 = -1;

/// The table that a copy writes.
pub(super) struct CopyTarget {
    table: Table,
    writer: TableWriter,
    identity: String,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyProgress {
    /// The target has this many of the first items of the source, except those with a mark for the
    /// indexer.
    Items(u64),
    /// The target has all items, except those with a mark for the indexer.
    OnlyMarked,
}

impl CopyTarget {
    /// Claims an empty table, or continues with a table whose copy was interrupted.
    ///
    /// # Errors
    /// The table is in use, or is a copy of something else.
    pub(super) async fn open(
        table: &Table,
        writer: TableWriter,
        identity: String,
        resumes: bool,
    ) -> Result<(Self, CopyProgress), Failure> {
        let target = Self { table: table.clone(), writer, identity };
        match (layout::read(table, layout::CURRENT_LAYOUT).await, resumes) {
            (Ok(None), false) => target.claim().await?,
            (Ok(None), true) => return Err("there is no copy to resume: the table is empty".into()),
            (Ok(Some(_)), _) => {
                return Err(format!("the table {} is not empty: copy into an empty one", table.name()).into());
            }
            (Err(LayoutError::UnfinishedCopy), true) => return target.resume().await,
            (Err(LayoutError::UnfinishedCopy), false) => {
                return Err(format!(
                    "an earlier copy into the table {} was interrupted: continue it with --resume, or copy into another table",
                    table.name()
                )
                .into());
            }
            (Err(error), _) => return Err(error.into()),
        }
        Ok((target, CopyProgress::Items(0)))
    }

    async fn claim(&self) -> Result<(), Failure> {
        let claim = Item::new(layout::copy_key()).with(FROM, text(&self.identity)).with(LAST_NUMBER, number(0));
        // This item has no attributes yet. The copy replaces it with the item of the source.
        let default = Item::new(rows::Experiment::key(&ExperimentId::DEFAULT));
        let writes = [
            Write::Put(claim, Condition::item_missing()),
            Write::Put(default, Condition::item_missing()),
            Write::Check(layout::key(), Condition::item_missing()),
        ];
        self.table.transact(&writes).await.map_err(|failure| match failure {
            TableFailure::Cancelled(_) => "another process has begun to use the table".into(),
            failure => failed(failure),
        })
    }

    async fn resume(self) -> Result<(Self, CopyProgress), Failure> {
        let claim = self.table.get(&layout::copy_key()).await.map_err(failed)?.unwrap_or_default();
        let from = claim.get(FROM).unwrap_or_default();
        if from != self.identity {
            return Err(format!(
                "the table is a copy of {from}, and this is {}: resume it with the same, unchanged source",
                self.identity
            )
            .into());
        }
        let progress = match claim.get(LAST_NUMBER).unwrap_or_default() {
            ONLY_MARKED => CopyProgress::OnlyMarked,
            count => CopyProgress::Items(u64::try_from(count).unwrap_or_default()),
        };
        Ok((self, progress))
    }

    /// Records the progress of the copy.
    pub(super) async fn record(&self, progress: CopyProgress) -> Result<(), Failure> {
        let count = match progress {
            CopyProgress::Items(count) => i64::try_from(count).unwrap_or(i64::MAX),
            CopyProgress::OnlyMarked => ONLY_MARKED,
        };
        let is_mine = Condition::Equals(FROM.into(), text(&self.identity));
        let recorded = Update::new(layout::copy_key()).set(LAST_NUMBER, number(count)).only_if(is_mine);
        self.table.apply(&recorded).await.map_err(failed)
    }

    /// Writes items, in no particular order.
    pub(super) async fn put(&self, items: Vec<Item>) -> Result<(), Failure> {
        self.writer.put_all(items).await
    }

    /// Writes the items that the target does not have yet.
    pub(super) async fn put_missing(&self, items: Vec<Item>) -> Result<(), Failure> {
        let puts = items.into_iter().map(|item| self.writer.put_if_missing(item));
        stream::iter(puts.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await
    }

    /// Writes the layout, so that servers can use the table.
    pub(super) async fn finish(&self, setting: Item) -> Result<(), Failure> {
        let is_mine = Condition::Equals(FROM.into(), text(&self.identity));
        let writes = [Write::Put(setting, Condition::item_missing()), Write::Delete(layout::copy_key(), is_mine)];
        match self.table.transact(&writes).await {
            // An earlier attempt of the transaction has succeeded, and only its response was lost.
            Err(TableFailure::Cancelled(_)) if layout::check(&self.table).await? => Ok(()),
            written => written.map_err(failed),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
fn failed(failure: TableFailure) -> Failure {
    format!("cannot write to the table: {failure:?}").into()
}
