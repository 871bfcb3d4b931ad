//! Indexes runs.
//!
//! A run's current entries in the index follow from its copy, and its new entries from its
//! documents. Indexing may be interrupted anywhere and repeated, because its steps have this order:
//!
//! 1. The run's journal is packed (the crate `metric-packing`).
//! 2. The new copy is written, with a list of stale entries. From then on it is known what the
//!    index may contain.
//! 3. Missing entries are written, and then stale entries are deleted.
//! 4. The mark is removed from the run's document, if that has not changed since it was read. The
//!    document gets the name of this indexing.
//!
//! A document with the same indexing name as its copy shows that step 3 was completed. Otherwise,
//! every entry is written again.
//!
//! A run whose copy another indexer has just written is postponed ([`turns`](crate::turns)).
//!
//! While calls add to a run's journal, its mark is kept ([`MarkFate`]), because they rely on it and
//! write nothing to the document.

use std::collections::{BTreeSet, HashMap, HashSet};

use entities::attributes::{END_TIME, INDEXED, NAME, START_TIME, STATUS};
use entities::fields::{Setting, to_json};
use entities::{
    Indexed, IndexingState, MarkFate, Moment, Reliance, RunCopy, RunItems, RunLocation, failed, metric_attribute,
    own_stage, pack_set, read_runs, unreadable,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{RunsByEnd, RunsByName, RunsByStatus};
use key_schema::{Ascending, Descending, Key, OwnStage};
use metric_packing::{Packed, pack};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::RunStatus;
use run_index::{ListOf, entries_of_copy, run_entries};
use search::IndexedFields;
use table::{Condition, Failure, Item, Result, Table, Update, Write, text};

use crate::Indexer;
use crate::turns::{self, Turns};

/// Number of concurrent requests.
const AT_ONCE: usize = 16;
/// Number of entries that are written together: as many requests of 25 as run concurrently.
const ENTRIES_AT_ONCE: usize = 25 * AT_ONCE;
/// Maximum number of metrics whose points the last update removes from a run's document, because an
/// expression may have at most 4 KB.
const UPDATE_METRICS: usize = 60;

/// The plan for indexing one run.
struct Plan {
    at: RunLocation,
    copy: RunCopy,
    /// Condition for writing the copy: it is still the old one.
    condition: Condition,
    /// The old copy, if the run has been deleted or restored since. It has another key, and is
    /// deleted in the same transaction.
    moved: Vec<(Key, Condition)>,
    puts: Vec<Item>,
    /// The lists of the entries in `puts`.
    lists: BTreeSet<ListOf>,
    deletes: Vec<Key>,
    /// Result to record in the run's document at the end.
    indexed: Indexed,
}

impl Plan {
    /// Returns the last write, which also removes the packed points from the document.
    fn conclusion(&self, times_packed: i64, packed: Option<&Packed>, closing: i64) -> Update {
        let update = self.indexed.update(&self.at, times_packed, closing);
        // Points beyond the limit are also in the metrics documents, so readers deduplicate them.
        let points = packed.into_iter().flat_map(|packed| &packed.from_document).take(UPDATE_METRICS);
        points.fold(update, |update, (metric, points)| update.delete(metric_attribute(metric), pack_set(points)))
    }
}

impl Indexer {
    /// Indexes runs, except those that are not due. Returns the runs that were postponed or keep
    /// their mark, and when they have to be checked.
    ///
    /// Runs and copies are read with three requests per 100 runs. Each run takes one request for
    /// its journal, those of packing, one for its new copy, and one for its mark. Entries take one
    /// request per 25. The first run of an experiment in a process takes one request for its
    /// directory of lists.
    pub(crate) async fn index_runs(&self, runs: &[RunLocation], setting: &Setting) -> Result<Vec<(RunLocation, i64)>> {
        let before_read = self.schedule.now();
        let items: HashMap<_, _> = read_runs(&self.table, runs).try_collect().await?;
        let places = |at: &RunLocation| items.get(at).map(|items| RunCopy::keys(at, &items.run)).unwrap_or_default();
        let mut copies = self.table.get_many(&runs.iter().flat_map(places).collect::<Vec<_>>()).await?;
        let mut plans = Vec::new();
        let states: HashMap<_, _> = items.iter().map(|(at, items)| (at, IndexingState::of(&items.run))).collect();
        let put_off = items.iter().filter_map(|(at, items)| {
            let of_another = || {
                let keys = RunCopy::keys(at, &items.run).into_iter();
                let mut olds = keys.filter_map(|key| copies.get(&key)?.get(INDEXED));
                olds.find_map(|indexing| self.belongs_to_another(at, &states[at], indexing))
            };
            Some((at.clone(), self.schedule.not_before(&states[at]).or_else(of_another)?))
        });
        let put_off: HashMap<_, _> = put_off.collect();
        let mut later = put_off.clone();
        let now = items.iter().filter(|(at, _)| !put_off.contains_key(*at) && states[at].is_marked);
        let mut packed = self.pack_runs(now).await?;
        let begin = Moment::now();
        for at in runs.iter().filter(|at| !put_off.contains_key(*at)) {
            let olds: Vec<_> = places(at).iter().filter_map(|key| copies.remove(key).map(RunCopy)).collect();
            match items.get(at) {
                Some(items) => {
                    let state = &states[at];
                    let due = self.schedule.next(state);
                    let leaves_some = packed.get(at).and_then(Option::as_ref).is_some_and(|packed| packed.leaves_some);
                    let mark = match state.fate_of_mark(before_read, !items.metrics.tails.is_empty()) {
                        _ if leaves_some => MarkFate::Stays { closes: false },
                        mark => mark,
                    };
                    let fields = setting.indexed_in(&at.experiment);
                    match plan(at, items, state, &olds, fields.as_ref(), (due, mark), Turns::name(self.schedule.now()))
                    {
                        Ok(plan) => plans.extend(plan.filter(|_| packed.contains_key(at))),
                        // The run stays marked. Searches read it themselves, and report the error.
                        Err(error) => tracing::error!(%error, "a run cannot be indexed"),
                    }
                    if state.is_relied_on() || leaves_some {
                        // The stream has no record of what calls added to the journal, so the run
                        // has to be checked later.
                        let early = self.schedule.early_ms(state);
                        let at_rest = || if leaves_some { before_read } else { self.schedule.closing() };
                        later.insert(at.clone(), due.map_or_else(at_rest, |due| due - early));
                    }
                }
                // The run has been deleted since. Its deletion is a record of its own.
                None => self.index.clear_up_run(at, None).await?,
            }
        }
        let written = plans.into_iter().map(|plan| async {
            self.turns.begin(&plan.at, &plan.indexed.indexing);
            match write_copy(&self.table, &plan).await {
                Ok(()) => Ok(Some(plan)),
                Err(Failure::TooLarge) => {
                    // The run stays marked, so searches read it themselves.
                    tracing::warn!(key = ?plan.copy.0.key(), "a run is too large for the index");
                    Ok(None)
                }
                Err(failure) => Err(failure),
            }
        });
        let plans: Vec<_> = stream::iter(written.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        let mut plans: Vec<Plan> = plans.into_iter().flatten().collect();
        let mut lists: HashMap<ExperimentId, HashSet<ListOf>> = HashMap::new();
        for plan in plans.iter_mut().filter(|plan| !plan.puts.is_empty()) {
            lists.entry(plan.at.experiment).or_default().extend(std::mem::take(&mut plan.lists));
        }
        for (experiment, lists) in lists {
            self.directory.enter(&self.table, experiment, lists).await?;
        }
        let mut puts: Vec<_> = plans.iter_mut().flat_map(|plan| std::mem::take(&mut plan.puts)).collect();
        let mut deletes: Vec<_> = plans.iter_mut().flat_map(|plan| std::mem::take(&mut plan.deletes)).collect();
        // Neighbors in a list are written together, so that a local database writes their page
        // once.
        puts.sort_by_cached_key(Item::key);
        deletes.sort();
        // Entries are written before others are deleted, so that a run that moves within a list is
        // never missing from it.
        while !puts.is_empty() {
            turns::check(begin.age())?;
            let rest = puts.split_off(puts.len().min(ENTRIES_AT_ONCE));
            self.table.write_many(std::mem::replace(&mut puts, rest), &[]).await?;
        }
        for deletes in deletes.chunks(ENTRIES_AT_ONCE) {
            turns::check(begin.age())?;
            self.table.write_many(Vec::new(), deletes).await?;
        }
        let concluded = plans.iter().filter_map(|plan| {
            let packed = packed.remove(&plan.at).flatten();
            Some(self.conclude(plan, items.get(&plan.at)?, states.get(&plan.at)?.reliance, packed))
        });
        let closing = stream::iter(concluded.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let closing: Vec<_> = closing.try_collect().await?;
        for (at, time) in closing.into_iter().flatten() {
            match time {
                Some(time) => later.insert(at, time),
                None => later.remove(&at),
            };
        }
        Ok(later.into_iter().collect())
    }

    /// Returns the time until which a run is left to another indexer, given the indexing name in
    /// its copy. Returns `None` if there is no other indexer, or it has finished.
    fn belongs_to_another(&self, at: &RunLocation, run: &IndexingState, indexing: &str) -> Option<i64> {
        let is_finished = run.indexing == Some(indexing);
        (!is_finished).then(|| self.turns.of_another(at, indexing, self.schedule.now())).flatten()
    }

    /// Packs those of the runs that are due for packing. A run that cannot be packed is left out
    /// and keeps its mark.
    async fn pack_runs<'a>(
        &self,
        runs: impl Iterator<Item = (&'a RunLocation, &'a RunItems)>,
    ) -> Result<HashMap<RunLocation, Option<Packed>>> {
        let packed = runs.map(|(at, items)| async move {
            let packed = if metric_packing::is_due(items).map_err(failed)? {
                match pack(&self.table, at, items, self.schedule.now()).await {
                    Err(Failure::TooLarge) => {
                        tracing::error!(?at, "a run has more metrics than can be packed");
                        return Ok(None);
                    }
                    packed => Some(packed?),
                }
            } else {
                None
            };
            Ok(Some((at.clone(), packed)))
        });
        let packed = stream::iter(packed.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        Ok(packed.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
    }

    /// Records in a run's document that the run has been indexed. A document that has changed in
    /// the meantime keeps its mark, and has a record of its own in the stream. Returns the run if
    /// its mark was removed, or if calls must stop relying on it. In the latter case, also returns
    /// when the run has to be checked again.
    async fn conclude(
        &self,
        plan: &Plan,
        items: &RunItems,
        reliance: Reliance,
        packed: Option<Packed>,
    ) -> Result<Option<(RunLocation, Option<i64>)>> {
        let times = packed.as_ref().map_or_else(|| items.metrics.packed(), |packed| packed.times);
        // Calculated now, because calls that have read the run before this write may rely on the
        // mark for some time.
        let closing = self.schedule.closing();
        match self.table.apply(&plan.conclusion(times, packed.as_ref(), closing)).await {
            Ok(()) if plan.indexed.mark == MarkFate::Goes => {
                self.turns.end(&plan.at);
                Ok(Some((plan.at.clone(), None)))
            }
            Ok(()) => {
                self.turns.end(&plan.at);
                let closes = plan.indexed.mark == MarkFate::Stays { closes: true };
                let closing = if closes { Some(closing) } else { reliance.closing() };
                Ok(closing.map(|time| (plan.at.clone(), Some(time))))
            }
            Err(Failure::Refused { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Writes the new copy. If the old copy has another key, deletes it in the same transaction: a run
/// never has two copies.
async fn write_copy(table: &Table, plan: &Plan) -> Result<()> {
    if plan.moved.is_empty() {
        return match table.put(plan.copy.0.clone(), &plan.condition).await {
            // The copy was written, and the response was lost.
            Err(Failure::Refused { item: Some(found), .. })
                if found.get(INDEXED) == Some(plan.indexed.indexing.as_str()) =>
            {
                Ok(())
            }
            written => written,
        };
    }
    let put = Write::Put(plan.copy.0.clone(), plan.condition.clone());
    let moved = plan.moved.iter().map(|(key, is_old)| Write::Delete(key.clone(), is_old.clone()));
    table.transact(&std::iter::once(put).chain(moved).collect::<Vec<_>>()).await
}

/// Plans the indexing of a run. Returns `None` if the run carries no mark. `due` is when the run
/// has to be indexed again, `mark` is what happens to its mark, and `indexing` is the name of this
/// indexing.
fn plan(
    at: &RunLocation,
    items: &RunItems,
    present: &IndexingState,
    olds: &[RunCopy],
    fields: &IndexedFields,
    (due, mark): (Option<i64>, MarkFate),
    indexing: String,
) -> mlflow_api::Result<Option<Plan>> {
    if !present.is_marked {
        return Ok(None);
    }
    let revision = present.revision.ok_or_else(|| unreadable(&items.run, "the revision of a run"))?;
    let wanted = run_entries(at, items, fields)?;
    let was_finished = olds.iter().filter_map(RunCopy::indexing).any(|old| present.indexing == Some(old));
    let (mut held, mut stale) = (BTreeSet::new(), BTreeSet::new());
    for old in olds {
        let of_copy = entries_of_copy(old)?;
        held.extend(of_copy.held);
        stale.extend(of_copy.stale);
    }
    if was_finished {
        stale.clear();
    }
    let is_finished = was_finished && !present.is_to_be_rebuilt;
    let deletes: Vec<Key> = held.union(&stale).filter(|entry| !wanted.keys.contains(*entry)).cloned().collect();
    let puts = wanted.keys.iter().filter(|entry| !is_finished || !held.contains(*entry));

    let custom = (*fields != IndexedFields::default()).then(|| to_json(fields));
    let copy = RunCopy::new(at, items, &wanted.keys)?.of_indexing(&indexing, &deletes, custom.as_deref());
    let copy = RunCopy(listed_copy(copy.0, at, &items.run));
    let key = copy.0.key();
    let is_as_read = |old: &RunCopy| match old.indexing() {
        Some(old) => Condition::Equals(INDEXED.into(), text(old)),
        None => Condition::item_missing(),
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = olds.iter().partition(|old| old.0.key() == key);
    let condition = here.first().map_or_else(Condition::item_missing, |old| is_as_read(old));
    let moved = elsewhere.into_iter().filter_map(|old| Some((old.0.key()?, is_as_read(old)))).collect();
    Ok(Some(Plan {
        at: at.clone(),
        condition,
        moved,
        puts: puts.map(|entry| Item::new(entry.clone())).collect(),
        lists: wanted.lists,
        deletes,
        copy,
        indexed: Indexed { revision, indexing, due, mark },
    }))
}

/// Adds the copy's keys in the lists by status, name and end time, which contain active runs only.
fn listed_copy(copy: Item, at: &RunLocation, run: &Item) -> Item {
    if own_stage(run) == OwnStage::Deleted {
        return copy;
    }
    let started = Descending(run.get(START_TIME).unwrap_or_default());
    let status = run.get(STATUS).map_or("", RunStatus::name);
    let name = run.get(NAME).unwrap_or_default();
    let copy = copy.indexed(RunsByStatus::key(&status.into(), &started, &at.run)).indexed(RunsByName::key(
        &name.into(),
        &started,
        &at.run,
    ));
    match run.get(END_TIME) {
        Some(ended) => copy.indexed(RunsByEnd::key(&Ascending(ended), &started, &at.run)),
        None => copy,
    }
}
