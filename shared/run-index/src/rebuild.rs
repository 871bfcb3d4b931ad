//! Rebuilding the index while it is in use.
//!
//! Only the stream's consumer writes entries. So a rebuild marks runs as changed, and the stream
//! has them indexed again. Meanwhile searches read these runs from their documents. Finally,
//! entries that no copy knows are deleted. An indexer of another version may have left them, or a
//! manual change.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use entities::attributes::{INDEXED, REBUILD};
use entities::{Marked, RUN, RunCopy, RunLocation, failed, read_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{ExperimentsByStage, RunsByTime, RunsChanged};
use key_schema::{Key, KeyRange, Name, OwnStage, place, ranges, rows};
use mlflow_api::{ExperimentId, RunId, Workspace};
use table::{Condition, Failure, Item, Query, Result, Update, Write, number, text};

use crate::RunIndex;
use crate::directory::lists_of;
use crate::entries::entries_of_copy;

/// Requests under way at a time.
const AT_ONCE: usize = 16;
/// So many runs are looked at one by one at a time.
const SOME: usize = 1_000;

impl RunIndex {
    /// The experiments of a workspace, deleted ones included. A request per MB of their names.
    pub async fn experiments(&self, workspace: &Workspace) -> Result<Vec<ExperimentId>> {
        let rows = self.table.query(Query::of(ExperimentsByStage::all(&Name::from(workspace.as_str())))).await?;
        let listed = read_all(&rows, "the name of an experiment", Item::entry::<ExperimentsByStage>).map_err(failed)?;
        Ok(listed.into_iter().map(|listed| listed.experiment).collect())
    }

    /// Marks all runs of an experiment, so that they are indexed as if nothing of them was; returns them. One write of each
    /// run's document; `done` is told of each page.
    pub async fn mark_runs(&self, experiment: ExperimentId, mut done: impl FnMut(usize)) -> Result<HashSet<RunId>> {
        let mut all = HashSet::new();
        let mut query = Query::of(RunsByTime::all(&experiment));
        loop {
            let page = self.table.query_page(&query).await?;
            let listed = read_all(&page.items, "a place in the list of runs", Item::entry::<RunsByTime>);
            let marks = listed.map_err(failed)?.into_iter().map(|RunsByTime { run, .. }| async move {
                let update = Update::new(rows::Run::key(&experiment, &run)).set(REBUILD, number(1)).marked(&run);
                match self.table.apply(&update).await {
                    Ok(()) => Ok(Some(run)),
                    // Gone by now.
                    Err(Failure::Refused { .. }) => Ok(None),
                    Err(failure) => Err(failure),
                }
            });
            let marked: Vec<_> =
                stream::iter(marks.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await?;
            done(marked.len());
            all.extend(marked.into_iter().flatten());
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(all),
            }
        }
    }

    /// Drops the runs that have been indexed again since they were marked. A request per MB of
    /// marks, and one per 100 of some runs that carry one: a run that is being written has a new
    /// mark most of the time.
    pub async fn drop_rebuilt(&self, experiment: ExperimentId, runs: &mut HashSet<RunId>) -> Result<()> {
        let items = self.table.query(Query::of(RunsChanged::all(&experiment))).await?;
        let marked = read_all(&items, "the mark of a run", Item::entry::<RunsChanged>).map_err(failed)?;
        let marked: HashSet<_> = marked.into_iter().map(|changed| changed.run).collect();
        runs.retain(|run| marked.contains(run));
        let some: Vec<_> = runs.iter().take(SOME).cloned().collect();
        let keys: Vec<_> = some.iter().map(|run| rows::Run::key(&experiment, run)).collect();
        let documents = self.table.get_many(&keys).await?;
        for (run, key) in some.iter().zip(&keys) {
            if !documents.get(key).is_some_and(|item| item.has(REBUILD)) {
                runs.remove(run);
            }
        }
        Ok(())
    }

    /// Deletes entries of an experiment that belong to no run as it was last indexed; says how many. Reads the experiment's copies and the
    /// lists of its directory once, and a transaction for each entry that goes.
    pub async fn sweep(&self, experiment: ExperimentId) -> Result<usize> {
        let mut known = HashSet::new();
        for copies in ranges::copies(&experiment, &RUN.into()) {
            let mut query = Query::of(copies);
            loop {
                let page = self.table.query_page(&query).await?;
                for copy in page.items.into_iter().map(RunCopy) {
                    let entries = entries_of_copy(&copy).map_err(failed)?;
                    known.extend(entries.held.iter().chain(&entries.stale).map(hash));
                }
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        let (mut swept, mut page) = (0, None);
        loop {
            let (lists, next) = lists_of(&self.table, experiment, page).await?;
            for list in lists {
                swept += self.sweep_list(experiment, list, &known).await?;
            }
            page = next;
            if page.is_none() {
                return Ok(swept);
            }
        }
    }

    /// Deletes the entries of a list that are not among those known; says how many.
    async fn sweep_list(&self, experiment: ExperimentId, list: KeyRange, known: &HashSet<u64>) -> Result<usize> {
        let mut swept = 0;
        let mut query = Query::of(list);
        loop {
            let page = self.table.query_page(&query).await?;
            for key in page.items.iter().filter_map(Item::key).filter(|key| !known.contains(&hash(key))) {
                swept += usize::from(self.sweep_entry(experiment, key).await?);
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(swept),
            }
        }
    }

    /// Deletes an entry if its run's copy, as it is now, does not know of it; whether it did.
    async fn sweep_entry(&self, experiment: ExperimentId, entry: Key) -> Result<bool> {
        let Some((started, run)) = place::started_and_run(&entry.sk) else { return Ok(false) };
        let at = RunLocation { experiment, run };
        // One that was deleted has no entries but those that are about to go.
        let key = RunCopy::key(&at, started, OwnStage::Active);
        let copy = self.table.get(&key).await?.map(RunCopy);
        if let Some(copy) = &copy
            && entries_of_copy(copy).map_err(failed)?.contains(&entry)
        {
            return Ok(false);
        }
        // If the run is indexed meanwhile, its copy is written first.
        let unchanged = match copy.as_ref().and_then(RunCopy::indexing) {
            Some(indexing) => Condition::Equals(INDEXED.into(), text(indexing)),
            None => Condition::item_missing(),
        };
        let writes = [Write::Check(key, unchanged), Write::Delete(entry, Condition::Always)];
        match self.table.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

fn hash(entry: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    hasher.finish()
}
