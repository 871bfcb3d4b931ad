//! Rebuilding the index while it is in use.
//!
//! Only the consumer of the stream writes index entries. A rebuild therefore marks runs as changed,
//! so that the stream's consumer indexes them again. In the meantime, searches read marked runs
//! from their documents, which is slower, so only a limited number of runs is marked at a time.
//! Finally, the rebuild deletes entries that follow from no copy. An indexer of another version or
//! a manual change may have left such entries.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use entities::attributes::INDEXED;
use entities::{IndexingState, MarkUpdate, RUN_ENTITY_TYPE, RunCopy, RunLocation, failed, read_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{ExperimentsByStage, RunsByTime, RunsChanged};
use key_schema::rows::IndexedCopy;
use key_schema::{Key, KeyRange, Name, OwnStage, list_positions, rows};
use mlflow_api::{ExperimentId, RunId, Workspace};
use table::{Condition, Failure, Item, Query, Result, Update, Write, text};

use crate::RunIndex;
use crate::entries::entries_of_copy;
use crate::list_directory::lists_of;

/// Number of concurrent requests.
const CONCURRENCY: usize = 16;
/// Maximum number of runs that are marked, or checked individually, at a time.
const BATCH_SIZE: usize = 1_000;
/// Maximum number of entries that a sweep holds in memory at a time. With this limit, a sweep needs
/// up to 115 MB. For an experiment with a million runs of 25 entries each, it scans the lists four
/// times.
pub const MAX_ENTRIES_IN_MEMORY: usize = 7_000_000;

/// The runs of an experiment that a rebuild has not marked yet.
#[derive(Debug)]
pub struct UnmarkedRuns {
    experiment: ExperimentId,
    /// `None` once all runs are marked.
    next: Option<Query>,
}

impl UnmarkedRuns {
    /// Creates the set of all runs of an experiment.
    #[must_use]
    pub fn all(experiment: ExperimentId) -> Self {
        Self { experiment, next: Some(Query::of(RunsByTime::all(&experiment))) }
    }

    /// Returns the experiment of the runs.
    #[must_use]
    pub fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    /// Checks whether no run is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

impl RunIndex {
    /// Returns the experiments of a workspace, including deleted ones. Sends one request per MB of
    /// experiment names.
    pub async fn experiments(&self, workspace: &Workspace) -> Result<Vec<ExperimentId>> {
        let rows = self.table.query(Query::of(ExperimentsByStage::all(&Name::from(workspace.as_str())))).await?;
        let listed = read_all(&rows, "the name of an experiment", Item::entry::<ExperimentsByStage>).map_err(failed)?;
        Ok(listed.into_iter().map(|listed| listed.experiment).collect())
    }

    /// Counts the runs of an experiment, including deleted ones. Sends one request per 8,000 runs,
    /// and costs one read unit per 40 runs.
    pub async fn count_runs(&self, experiment: ExperimentId) -> Result<u64> {
        let (mut query, mut runs) = (Query::of(RunsByTime::all(&experiment)), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            runs += page.items.len() as u64;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(runs),
            }
        }
    }

    /// Marks up to `most` of the next runs of an experiment to be indexed from scratch, and returns
    /// them. Sends one request to list the runs, and one write for the document of each run.
    pub async fn mark_runs(&self, unmarked: &mut UnmarkedRuns, most: usize) -> Result<HashSet<RunId>> {
        let experiment = unmarked.experiment;
        let Some(query) = unmarked.next.clone() else { return Ok(HashSet::new()) };
        let query = query.limit(most.clamp(1, BATCH_SIZE));
        let page = self.table.query_page(&query).await?;
        let listed = read_all(&page.items, "a place in the list of runs", Item::entry::<RunsByTime>);
        let marks = listed.map_err(failed)?.into_iter().map(|RunsByTime { run, .. }| async move {
            let update = Update::new(rows::Run::key(&experiment, &run)).marked_for_rebuild(&run);
            match self.table.apply(&update).await {
                Ok(()) => Ok(Some(run)),
                // The run has been deleted in the meantime.
                Err(Failure::Refused { .. }) => Ok(None),
                Err(failure) => Err(failure),
            }
        });
        let marked: Vec<_> =
            stream::iter(marks.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await?;
        unmarked.next = page.next.map(|next| query.starting_at(next));
        Ok(marked.into_iter().flatten().collect())
    }

    /// Removes from `runs` the runs without a mark, which have been indexed or deleted. Takes one
    /// request per MB of marks.
    pub async fn drop_unmarked(&self, experiment: ExperimentId, runs: &mut HashSet<RunId>) -> Result<()> {
        // Many other runs may be marked as well, so the query only covers the span between the
        // first and the last of `runs`.
        let (Some(first), Some(last)) = (runs.iter().min(), runs.iter().max()) else { return Ok(()) };
        let range = RunsChanged::all(&experiment).range().starting(first.as_str()).until(last.as_str());
        let items = self.table.query(Query::of(range)).await?;
        let marked = read_all(&items, "the mark of a run", Item::entry::<RunsChanged>).map_err(failed)?;
        let marked: HashSet<_> = marked.into_iter().map(|changed| changed.run).collect();
        runs.retain(|run| marked.contains(run));
        Ok(())
    }

    /// Removes from `runs` those that have been indexed again since they were marked. A run that is
    /// being written to usually carries a mark, even if it has been indexed again. For up to 1,000
    /// of the runs with a mark, the document is therefore read as well. Takes one request per MB of
    /// marks, and one per 100 documents.
    pub async fn drop_rebuilt(&self, experiment: ExperimentId, runs: &mut HashSet<RunId>) -> Result<()> {
        self.drop_unmarked(experiment, runs).await?;
        let some: Vec<_> = runs.iter().take(BATCH_SIZE).cloned().collect();
        let keys: Vec<_> = some.iter().map(|run| rows::Run::key(&experiment, run)).collect();
        let documents = self.table.get_many(&keys).await?;
        for (run, key) in some.iter().zip(&keys) {
            if !documents.get(key).is_some_and(|run| IndexingState::of(run).is_to_be_rebuilt) {
                runs.remove(run);
            }
        }
        Ok(())
    }

    /// Deletes the entries of an experiment that do not follow from the copy of their run, and
    /// returns their number. `held_at_once` is the maximum number of entries in memory, which is
    /// [`MAX_ENTRIES_IN_MEMORY`] except in tests. The entries of one page of copies may exceed it.
    /// Reads the experiment's copies once, and all its lists once per `held_at_once` entries. Sends
    /// one transaction for each entry that is deleted.
    pub async fn sweep(&self, experiment: ExperimentId, held_at_once: usize) -> Result<usize> {
        // Only copies of active runs are read, because the entries of a deleted run are deleted
        // soon in any case, and its copy is stored elsewhere.
        let copies = IndexedCopy::partition(&experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into());
        let mut copies = Some(Query::of(copies).limit(held_at_once.clamp(1, BATCH_SIZE)));
        let (mut swept, mut after): (_, Option<CopyPosition>) = (0, None);
        while let Some(query) = copies.take() {
            let (known, next) = self.known(query, after.take(), held_at_once).await?;
            after.clone_from(&known.until);
            copies = next;
            let mut page = None;
            loop {
                let (lists, next) = lists_of(&self.table, experiment, page).await?;
                for list in lists {
                    swept += self.sweep_list(experiment, list, &known).await?;
                }
                page = next;
                if page.is_none() {
                    break;
                }
            }
        }
        Ok(swept)
    }

    /// Reads further copies. Returns the entries that follow from them, and the query for the
    /// copies after them, or `None` after the last copy.
    async fn known(
        &self,
        mut query: Query,
        after: Option<CopyPosition>,
        held_at_once: usize,
    ) -> Result<(KnownEntries, Option<Query>)> {
        let mut known = KnownEntries { entries: HashSet::new(), after, until: None };
        loop {
            let page = self.table.query_page(&query).await?;
            let mut last = None;
            for copy in page.items.into_iter().map(RunCopy) {
                last = copy.place().map(|(at, started, _)| (Reverse(started), at.run));
                let entries = entries_of_copy(&copy).map_err(failed)?;
                known.entries.extend(entries.held.iter().chain(&entries.stale).map(hash));
            }
            let Some(next) = page.next else { return Ok((known, None)) };
            query = query.starting_at(next);
            if known.entries.len() >= held_at_once && last.is_some() {
                known.until = last;
                return Ok((known, Some(query)));
            }
        }
    }

    /// Deletes entries from a list that belong to a run in `known`, but do not follow from that
    /// run's copy. Returns the number of deleted entries.
    async fn sweep_list(&self, experiment: ExperimentId, list: KeyRange, known: &KnownEntries) -> Result<usize> {
        let mut swept = 0;
        let mut query = Query::of(list);
        loop {
            let page = self.table.query_page(&query).await?;
            for key in page.items.iter().filter_map(Item::key).filter(|key| known.misses(key)) {
                swept += usize::from(self.sweep_entry(experiment, key).await?);
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(swept),
            }
        }
    }

    /// Deletes an entry unless the current copy of its run contains it. Returns whether it was
    /// deleted.
    async fn sweep_entry(&self, experiment: ExperimentId, entry: Key) -> Result<bool> {
        let Some((started, run)) = list_positions::started_and_run(&entry.sk) else { return Ok(false) };
        let at = RunLocation { experiment, run };
        // If the run was deleted, it has no copy under this key, and its entries may all be
        // deleted.
        let key = RunCopy::key(&at, started, OwnStage::Active);
        let copy = self.table.get(&key).await?.map(RunCopy);
        if let Some(copy) = &copy
            && entries_of_copy(copy).map_err(failed)?.contains(&entry)
        {
            return Ok(false);
        }
        // The deletion is conditional on the copy. If the run is being indexed at the same time,
        // its new copy is written before the new entries, so the deletion is refused.
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

/// Position of a run among the copies, which are sorted newest first.
type CopyPosition = (Reverse<i64>, RunId);

/// The entries of all runs between two positions in the order of copies, according to their copies.
struct KnownEntries {
    /// Hashes of the entries. If a stray entry has the hash of another entry, it is kept, which is
    /// harmless.
    entries: HashSet<u64>,
    /// Position of the last run before these runs. `None` if these are the first runs.
    after: Option<CopyPosition>,
    /// Position of the last of these runs. `None` if no runs follow.
    until: Option<CopyPosition>,
}

impl KnownEntries {
    /// Checks whether an entry is stray: it belongs to one of these runs, but does not follow from
    /// that run's copy.
    fn misses(&self, entry: &Key) -> bool {
        let Some((started, run)) = list_positions::started_and_run(&entry.sk) else { return false };
        let place = (Reverse(started), run);
        let is_here = self.after.as_ref().is_none_or(|after| *after < place)
            && self.until.as_ref().is_none_or(|until| place <= *until);
        is_here && !self.entries.contains(&hash(entry))
    }
}

fn hash(entry: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    hasher.finish()
}
