//! Writes the copies and entries of planned runs, and removes their marks.

use std::collections::{HashMap, HashSet};

use entities::attributes::INDEXED;
use entities::{MarkOutcome, Moment, RunLocation};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::ExperimentId;
use run_index::ListIdentity;
use table::{Failure, Item, Result, Table, Write};

use super::indexing_plan::{IndexUpdate, IndexingPlan};
use crate::Indexer;
use crate::run_ownership;

/// Number of concurrent requests.
const CONCURRENCY: usize = 16;
/// Number of entries per batch, which is the capacity of the concurrent requests, with 25 entries
/// each.
const ENTRY_BATCH: usize = 25 * CONCURRENCY;

impl Indexer {
    /// Writes the copies of the runs whose plans update the index. Returns the plans, except those
    /// for runs that are too large for the index.
    pub(super) async fn write_copies(&self, plans: Vec<IndexingPlan>) -> Result<Vec<IndexingPlan>> {
        let written = plans.into_iter().map(|plan| async {
            let Some(index) = &plan.index else { return Ok(Some(plan)) };
            self.ownership.begin(&plan.at, &index.indexing);
            match write_copy(&self.table, index).await {
                Ok(()) => Ok(Some(plan)),
                Err(Failure::TooLarge) => {
                    // A run that is too large stays marked, so searches read it from its documents.
                    tracing::warn!(key = ?index.copy.0.key(), "a run is too large for the index");
                    Ok(None)
                }
                Err(failure) => Err(failure),
            }
        });
        let written: Vec<_> = stream::iter(written.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        Ok(written.into_iter().flatten().collect())
    }

    /// Writes missing entries, and then deletes stale ones, so that a run that moves within a list is
    /// never missing from it. Gives up if the runs were planned too long ago.
    pub(super) async fn write_entries(&self, plans: &mut [IndexingPlan], planned_at: Moment) -> Result<()> {
        let mut lists: HashMap<ExperimentId, HashSet<ListIdentity>> = HashMap::new();
        for plan in plans.iter_mut() {
            let Some(index) = plan.index.as_mut().filter(|index| !index.puts.is_empty()) else { continue };
            lists.entry(plan.at.experiment).or_default().extend(std::mem::take(&mut index.lists));
        }
        for (experiment, lists) in lists {
            self.directory.enter(&self.table, experiment, lists).await?;
        }
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for index in plans.iter_mut().filter_map(|plan| plan.index.as_mut()) {
            puts.append(&mut index.puts);
            deletes.append(&mut index.deletes);
        }
        // Neighbors in a list are written together, because a local database then writes the page
        // that contains them only once.
        puts.sort_by_cached_key(Item::key);
        deletes.sort();
        while !puts.is_empty() {
            run_ownership::check(planned_at.age())?;
            let rest = puts.split_off(puts.len().min(ENTRY_BATCH));
            self.table.write_many(std::mem::replace(&mut puts, rest), &[]).await?;
        }
        for deletes in deletes.chunks(ENTRY_BATCH) {
            run_ownership::check(planned_at.age())?;
            self.table.write_many(Vec::new(), deletes).await?;
        }
        Ok(())
    }

    /// Records in the documents of the runs that they have been indexed. Returns the runs whose
    /// mark was removed, paired with `None`, and the runs that keep their mark for now because
    /// calls have to stop relying on it first, paired with the time in ms at which they have to be
    /// checked.
    pub(super) async fn conclude_runs(&self, plans: Vec<IndexingPlan>) -> Result<Vec<(RunLocation, Option<i64>)>> {
        let concluded = plans.iter().map(|plan| self.conclude(plan));
        let concluded = stream::iter(concluded.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
        Ok(concluded.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
    }

    /// Records the result of a pass in a run's document. If the document has changed since
    /// it was read, it keeps its mark, and the result is `None`. The stream contains a separate
    /// record of that change.
    async fn conclude(&self, plan: &IndexingPlan) -> Result<Option<(RunLocation, Option<i64>)>> {
        // The time is computed now and not earlier, because calls that have read the run before
        // this write may rely on the mark for some time.
        let closing = self.schedule.closing();
        match self.table.apply(&plan.conclusion(closing)).await {
            Ok(()) if plan.index.is_some() => self.ownership.end(&plan.at),
            Ok(()) => {}
            Err(Failure::Refused { .. }) => return Ok(None),
            Err(failure) => return Err(failure),
        }
        let check = match plan.indexed.mark {
            MarkOutcome::Goes => return Ok(Some((plan.at.clone(), None))),
            MarkOutcome::Stays { closes: true } => Some(closing),
            MarkOutcome::Stays { closes: false } => plan.reliance.closing(),
        };
        Ok(check.map(|time| (plan.at.clone(), Some(time))))
    }
}

/// Writes the new copy. If the old copy has another key, deletes it in the same transaction, so
/// that a run never has two copies.
async fn write_copy(table: &Table, index: &IndexUpdate) -> Result<()> {
    if index.moved.is_empty() {
        return match table.put(index.copy.0.clone(), &index.condition).await {
            // The copy in the table is the new one, because an earlier attempt wrote it and its
            // response was lost.
            Err(Failure::Refused { item: Some(found), .. }) if found.get(INDEXED) == Some(index.indexing.as_str()) => {
                Ok(())
            }
            written => written,
        };
    }
    let put = Write::Put(index.copy.0.clone(), index.condition.clone());
    let moved = index.moved.iter().map(|(key, is_old)| Write::Delete(key.clone(), is_old.clone()));
    table.transact(&std::iter::once(put).chain(moved).collect::<Vec<_>>()).await
}
