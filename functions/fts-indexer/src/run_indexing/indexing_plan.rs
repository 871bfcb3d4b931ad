//! Plans the indexing of a run, without requests.

use std::collections::BTreeSet;

use entities::attributes::{END_TIME, INDEXED, NAME, START_TIME, STATUS};
use entities::indexed_fields_setting::{IndexedFieldsSetting, to_json};
use entities::{
    IndexingResult, IndexingState, MarkOutcome, Reliance, RunCopy, RunLocation, metric_attribute, own_stage, pack_set,
    unreadable,
};
use key_schema::index::{RunsByEnd, RunsByName, RunsByStatus};
use key_schema::{Ascending, Descending, Key, OwnStage};
use mlflow_api::tracking::RunStatus;
use run_index::{ListIdentity, entries_of_copy, run_entries};
use search::IndexedFields;
use table::{Condition, Item, Update, text};

use super::journal_packing::JournalPacking;
use super::run_reader::ReadRun;
use crate::Indexer;
use crate::run_ownership::RunOwnership;

/// Maximum number of metrics whose points the final update removes from a run's document. The limit
/// is needed because an update expression may have at most 4 KB.
const MAX_UPDATE_METRICS: usize = 60;

/// The plan for indexing one run.
pub(super) struct IndexingPlan {
    pub(super) at: RunLocation,
    /// What is written to the index, or `None` if the run keeps its mark and `reindex` has not
    /// requested it. Searches do not use the index for a run with a mark.
    pub(super) index: Option<IndexUpdate>,
    /// The result of the indexing. It is recorded in the run's document at the end.
    pub(super) indexed: IndexingResult,
    /// Whether calls may rely on the run's mark after this indexing.
    pub(super) reliance: Reliance,
    packing: JournalPacking,
    /// How many times the run's metrics have been packed, including this time.
    packing_count: i64,
}

/// The writes that bring the index to the current state of a run.
pub(super) struct IndexUpdate {
    /// Name of the indexing, which is also stored in the copy.
    pub(super) indexing: String,
    pub(super) copy: RunCopy,
    /// Condition for writing the run's copy: the stored copy is still the one that was read.
    pub(super) condition: Condition,
    /// The previous copy, if the run has been deleted or restored since that copy was written. Its
    /// key differs from the new copy's, so it is deleted in the same transaction.
    pub(super) moved: Vec<(Key, Condition)>,
    pub(super) puts: Vec<Item>,
    /// The lists that contain the entries in `puts`.
    pub(super) lists: BTreeSet<ListIdentity>,
    pub(super) deletes: Vec<Key>,
}

impl IndexingPlan {
    /// Returns the final update of the run's document, which also removes the packed points.
    pub(super) fn conclusion(&self, closing: i64) -> Update {
        let update = self.indexed.update(&self.at, self.packing_count, closing);
        // At most `MAX_UPDATE_METRICS` metrics are removed. Readers ignore the remaining points in
        // the document, because they are also in the metrics documents.
        let JournalPacking::Done(packed) = &self.packing else { return update };
        let points = packed.from_document.iter().take(MAX_UPDATE_METRICS);
        points.fold(update, |update, (metric, points)| update.delete(metric_attribute(metric), pack_set(points)))
    }
}

impl Indexer {
    /// Plans the indexing of a run. `packing` is `None` if the run has no mark, or if it has to
    /// keep its mark because it cannot be packed. Returns the plan, if there is something to do,
    /// and the time in ms at which the run has to be checked, if the stream will not contain a
    /// record that causes the check.
    pub(super) fn plan_run(
        &self,
        run: &ReadRun,
        packing: Option<JournalPacking>,
        read_at: i64,
        setting: &IndexedFieldsSetting,
    ) -> (Option<IndexingPlan>, Option<i64>) {
        let state = run.state();
        let leaves_some = packing.as_ref().is_some_and(JournalPacking::has_points_left);
        let mark = if leaves_some {
            MarkOutcome::Stays { closes: false }
        } else {
            state.fate_of_mark(read_at, !run.items.metrics.tails.is_empty())
        };
        let is_logged_to =
            !leaves_some && state.reliance == Reliance::Open && mark == MarkOutcome::Stays { closes: false };
        let journal = is_logged_to.then(|| run.items.metrics.tails.iter().map(Item::size).sum());
        let due = self.schedule.next(&state, journal);
        let fields = setting.indexed_in(&run.at.experiment);
        let timing = IndexingTime { due, mark, name: RunOwnership::name(self.schedule.now()) };
        let plan = packing.and_then(|packing| {
            plan(run, packing, fields.as_ref(), timing).unwrap_or_else(|error| {
                // The run stays marked, so searches read it from its documents, and report the
                // error.
                tracing::error!(%error, "a run cannot be indexed");
                None
            })
        });
        // What calls add to the journal does not appear in the stream, so the run has to be checked
        // later.
        let check = (state.is_relied_on() || leaves_some).then(|| match due {
            Some(due) => due - self.schedule.early_ms(&state),
            None if leaves_some => read_at,
            None => self.schedule.closing(),
        });
        (plan, check)
    }
}

/// The parameters of an indexing: its name, when the run is due again, and what happens to the
/// run's mark.
struct IndexingTime {
    /// Time in ms at which the run has to be indexed again.
    due: Option<i64>,
    /// What happens to the run's mark.
    mark: MarkOutcome,
    /// Name of the indexing.
    name: String,
}

/// Returns the plan for indexing a run, or `None` if it has no mark.
fn plan(
    run: &ReadRun,
    packing: JournalPacking,
    fields: &IndexedFields,
    timing: IndexingTime,
) -> mlflow_api::Result<Option<IndexingPlan>> {
    let ReadRun { at, items, .. } = run;
    let state = run.state();
    if !state.is_marked {
        return Ok(None);
    }
    let revision = state.revision.ok_or_else(|| unreadable(&items.run, "the revision of a run"))?;
    let keeps_mark = matches!(timing.mark, MarkOutcome::Stays { .. });
    let index = if keeps_mark && !state.is_to_be_rebuilt {
        None
    } else {
        Some(index_update(run, &state, fields, timing.name)?)
    };
    let indexing = index.as_ref().map(|index| index.indexing.clone());
    Ok(Some(IndexingPlan {
        at: at.clone(),
        index,
        indexed: IndexingResult { revision, indexing, due: timing.due, mark: timing.mark },
        reliance: state.reliance,
        packing_count: match &packing {
            JournalPacking::NotDue => items.metrics.packed(),
            JournalPacking::Done(packed) => packed.times,
        },
        packing,
    }))
}

/// Returns the writes to the index for a run in this state.
fn index_update(
    run: &ReadRun,
    state: &IndexingState,
    fields: &IndexedFields,
    indexing: String,
) -> mlflow_api::Result<IndexUpdate> {
    let ReadRun { at, items, copies } = run;
    let wanted = run_entries(at, items, fields)?;
    let was_finished = copies.iter().filter_map(RunCopy::indexing).any(|name| state.indexing == Some(name));
    let (mut held, mut outdated) = (BTreeSet::new(), BTreeSet::new());
    for copy in copies {
        let of_copy = entries_of_copy(copy)?;
        held.extend(of_copy.held);
        outdated.extend(of_copy.stale);
    }
    if was_finished {
        outdated.clear();
    }
    let is_finished = was_finished && !state.is_to_be_rebuilt;
    let deletes: Vec<Key> = held.union(&outdated).filter(|entry| !wanted.keys.contains(*entry)).cloned().collect();
    let puts = wanted.keys.iter().filter(|entry| !is_finished || !held.contains(*entry));

    let custom = (*fields != IndexedFields::default()).then(|| to_json(fields));
    let copy = RunCopy::new(at, items, &wanted.keys)?.of_indexing(&indexing, &deletes, custom.as_deref());
    let copy = RunCopy(listed_copy(copy.0, at, &items.run));
    let key = copy.0.key();
    let is_as_read = |copy: &RunCopy| match copy.indexing() {
        Some(name) => Condition::Equals(INDEXED.into(), text(name)),
        None => Condition::item_missing(),
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = copies.iter().partition(|copy| copy.0.key() == key);
    let condition = here.first().map_or_else(Condition::item_missing, |copy| is_as_read(copy));
    let moved = elsewhere.into_iter().filter_map(|copy| Some((copy.0.key()?, is_as_read(copy)))).collect();
    Ok(IndexUpdate {
        indexing,
        condition,
        moved,
        puts: puts.map(|entry| Item::new(entry.clone())).collect(),
        lists: wanted.lists,
        deletes,
        copy,
    })
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
