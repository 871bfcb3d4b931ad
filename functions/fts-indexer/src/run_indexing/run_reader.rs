//! Reads the runs of a batch with their copies, and postpones those that are not due.

use std::collections::HashMap;

use entities::attributes::INDEXED;
use entities::{IndexingState, RunCopy, RunItems, RunLocation, read_runs};
use futures::stream::TryStreamExt;
use table::Result;

use crate::Indexer;

/// The runs of a batch.
pub(super) struct ReadBatch {
    /// Time in ms when reading began.
    pub(super) read_at: i64,
    /// Runs that exist, in the order of the batch.
    pub(super) runs: Vec<ReadRun>,
    /// Runs of the batch that do not exist any more.
    pub(super) deleted: Vec<RunLocation>,
}

/// A run with its copies: one, or two if it has been deleted or restored since it was indexed.
pub(super) struct ReadRun {
    pub(super) at: RunLocation,
    pub(super) items: RunItems,
    pub(super) copies: Vec<RunCopy>,
}

impl ReadRun {
    /// Returns the indexing state in the run's document.
    pub(super) fn state(&self) -> IndexingState<'_> {
        IndexingState::of(&self.items.run)
    }
}

impl Indexer {
    /// Reads runs and their copies, with three requests per 100 runs.
    pub(super) async fn read_batch(&self, runs: &[RunLocation]) -> Result<ReadBatch> {
        let read_at = self.schedule.now();
        let mut items: HashMap<_, _> = read_runs(&self.table, runs).try_collect().await?;
        let keys = |at: &RunLocation| items.get(at).map(|items| RunCopy::keys(at, &items.run)).unwrap_or_default();
        let mut copies = self.table.get_many(&runs.iter().flat_map(keys).collect::<Vec<_>>()).await?;
        let mut batch = ReadBatch { read_at, runs: Vec::new(), deleted: Vec::new() };
        for at in runs {
            match items.remove(at) {
                Some(items) => {
                    let keys = RunCopy::keys(at, &items.run);
                    let copies = keys.iter().filter_map(|key| copies.remove(key).map(RunCopy)).collect();
                    batch.runs.push(ReadRun { at: at.clone(), items, copies });
                }
                None => batch.deleted.push(at.clone()),
            }
        }
        Ok(batch)
    }

    /// Returns the runs that must not be indexed yet, either because they are not due or because
    /// another indexer is processing them, and the times in ms until which they are postponed.
    pub(super) fn postponed(&self, runs: &[ReadRun]) -> HashMap<RunLocation, i64> {
        let until = |run: &ReadRun| self.schedule.not_before(&run.state()).or_else(|| self.other_indexer_until(run));
        runs.iter().filter_map(|run| Some((run.at.clone(), until(run)?))).collect()
    }

    /// Returns the time in ms until which a run is left to another indexer. The time is derived
    /// from the names of the indexings in the run's copies. Returns `None` if there is no other
    /// indexer, or if it has finished.
    fn other_indexer_until(&self, run: &ReadRun) -> Option<i64> {
        let mut names = run.copies.iter().filter_map(|copy| copy.0.get(INDEXED));
        names.find_map(|name| {
            let is_finished = run.state().indexing == Some(name);
            (!is_finished).then(|| self.ownership.owned_by_other_until(&run.at, name, self.schedule.now())).flatten()
        })
    }
}
