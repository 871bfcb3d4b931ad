//! Indexing runs.
//!
//! For each run: what the index holds of it follows from its copy, what it should hold from its documents. In this order,
//! so that it may end anywhere and be done again:
//!
//! 1. the new copy is written, with the entries that have to go; from here on it is known what the index may hold,
//! 2. the entries that are missing are put, then those that have to go are deleted,
//! 3. the marks are taken off the documents, if these are still what was read; they get the number of this indexing.
//!
//! A document that has the number of its copy says that step 2 was finished. If none does, every entry is put again.

use std::collections::{BTreeSet, HashMap};

use entities::attributes::{DUE, INDEXED, NAME, OVERDUE, REBUILD, REVISION, STAGE, STAGE_VERSION, START_TIME, STATUS};
use entities::fields::{from_json, to_json};
use entities::{RunCopy, RunItems, RunLocation, read_runs, stage_from, unreadable};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{RunsByName, RunsByStatus, RunsChanged};
use key_schema::{Descending, IndexEntry, Key, Stage};
use mlflow_api::tracking::LifecycleStage;
use search::IndexedFields;
use table::{Condition, Failure, Item, Result, Table, Update, number, text};

use crate::Indexer;
use crate::entries::run_entries;

/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// What has to be done for one run.
struct Plan {
    copy: RunCopy,
    /// The copy may be written if this is still the old one's.
    condition: Condition,
    puts: Vec<Item>,
    deletes: Vec<Key>,
    /// The marks to take off.
    marks: Vec<Update>,
}

impl Indexer {
    /// Indexes runs, but for those that are not due; returns these, and when they are. Three requests per 100 runs to read them and
    /// their copies, one a run for its new copy, one for each mark, and one per 25 entries.
    pub(crate) async fn index_runs(
        &self,
        runs: &[RunLocation],
        fields: &IndexedFields,
    ) -> Result<Vec<(RunLocation, i64)>> {
        let items: HashMap<_, _> = read_runs(&self.table, runs).try_collect().await?;
        let copies = self.table.get_many(&runs.iter().map(RunCopy::key).collect::<Vec<_>>()).await?;
        let (mut plans, mut later) = (Vec::new(), Vec::new());
        for at in runs {
            if let Some(due) = items.get(at).and_then(|items| self.schedule.not_before(items)) {
                later.push((at.clone(), due));
                continue;
            }
            let copy = copies.get(&RunCopy::key(at)).cloned().map(RunCopy);
            match items.get(at) {
                Some(items) => match plan(at, items, copy.as_ref(), fields, self.schedule.next(&items.run)) {
                    Ok(plan) => plans.extend(plan),
                    // It stays marked: searches look at it themselves, and say so.
                    Err(error) => tracing::error!(%error, "a run cannot be indexed"),
                },
                // Gone since, or a late metric made a document anew.
                None => self.clear_up_run(at).await?,
            }
        }
        let written = plans.into_iter().map(|plan| async {
            match self.table.put(plan.copy.0.clone(), &plan.condition).await {
                Ok(()) => Ok(Some(plan)),
                Err(Failure::TooLarge) => {
                    // It stays marked: searches look at it themselves.
                    tracing::warn!(key = ?plan.copy.0.key(), "a run is too large for the index");
                    Ok(None)
                }
                Err(failure) => Err(failure),
            }
        });
        let plans: Vec<_> = stream::iter(written.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        let mut plans: Vec<Plan> = plans.into_iter().flatten().collect();
        let puts = plans.iter_mut().flat_map(|plan| std::mem::take(&mut plan.puts)).collect();
        let deletes: Vec<_> = plans.iter_mut().flat_map(|plan| std::mem::take(&mut plan.deletes)).collect();
        // A run that moves within a list is in it twice rather than not at all.
        self.table.write_many(puts, &[]).await?;
        self.table.write_many(Vec::new(), &deletes).await?;
        let marks = plans.iter().flat_map(|plan| &plan.marks).map(|mark| take_off(&self.table, mark));
        stream::iter(marks.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(later)
    }
}

/// Takes a mark off. A document that has changed since keeps it, and has a record of its own in the stream.
async fn take_off(table: &Table, mark: &Update) -> Result<()> {
    match table.update(mark).await {
        Ok(_) | Err(Failure::Refused { .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// What has to be done for a run; nothing, if it carries no mark. `due` is when it need be indexed again.
fn plan(
    at: &RunLocation,
    items: &RunItems,
    old: Option<&RunCopy>,
    fields: &IndexedFields,
    due: Option<i64>,
) -> mlflow_api::Result<Option<Plan>> {
    let documents = || std::iter::once(&items.run).chain(&items.metrics);
    let marked: Vec<_> = documents().filter(|document| document.is_in(RunsChanged::INDEX)).collect();
    if marked.is_empty() {
        return Ok(None);
    }
    let wanted = run_entries(at, items, fields)?;
    let indexing = format!("{:016x}", rand::random::<u64>());
    let old_indexing = old.and_then(RunCopy::indexing);
    let was_finished = old_indexing.is_some() && documents().any(|document| document.text(INDEXED) == old_indexing);
    let (held, stale) = held(at, old)?;
    let stale = if was_finished { BTreeSet::new() } else { stale };
    let is_finished = was_finished && !items.run.has(REBUILD);
    let deletes: Vec<String> = held.union(&stale).filter(|entry| !wanted.contains(*entry)).cloned().collect();
    let puts = wanted.iter().filter(|entry| !is_finished || !held.contains(*entry));

    let pk = at.key().pk;
    let key = |sk: &String| Key { pk: pk.clone(), sk: sk.clone() };
    let custom = (*fields != IndexedFields::default()).then(|| to_json(fields));
    let copy = RunCopy::new(at, items, &wanted)?.of_indexing(&indexing, &deletes, custom.as_deref());
    let condition = match old_indexing {
        Some(old) => Condition::Equals(INDEXED.into(), text(old)),
        None => Condition::item_missing(),
    };
    let marks = marked.into_iter().filter_map(|document| {
        let revision = number(document.number(REVISION)?);
        let update = Update::new(document.key()?).not_indexed(RunsChanged::INDEX).set(INDEXED, text(&indexing));
        let update = update.remove(REBUILD).remove(OVERDUE);
        let update = match due {
            Some(due) => update.set(DUE, number(due)),
            None => update.remove(DUE),
        };
        Some(update.only_if(Condition::Equals(REVISION.into(), revision)))
    });
    Ok(Some(Plan {
        copy: RunCopy(listed_copy(copy.0, at, &items.run)),
        condition,
        puts: puts.map(|entry| Item::new(key(entry))).collect(),
        deletes: deletes.iter().map(key).collect(),
        marks: marks.collect(),
    }))
}

/// The copy with its keys in the lists by status and by name.
fn listed_copy(copy: Item, at: &RunLocation, run: &Item) -> Item {
    let started = Descending(run.number(START_TIME).unwrap_or_default());
    let version = run.number(STAGE_VERSION).and_then(|version| version.try_into().ok()).unwrap_or_default();
    let stage = match stage_from(run.text(STAGE).unwrap_or_default()) {
        LifecycleStage::Active => Stage::Active,
        LifecycleStage::Deleted => Stage::Deleted { version },
    };
    let (status, name) = (run.text(STATUS).unwrap_or_default(), run.text(NAME).unwrap_or_default());
    copy.indexed(RunsByStatus::key(&stage, &status.into(), &started, &at.run)).indexed(RunsByName::key(
        &stage,
        &name.into(),
        &started,
        &at.run,
    ))
}

/// The entries that a run's copy stands for, and those that were to be deleted when it was made.
///
/// # Errors
/// An internal one if the copy cannot be read.
pub(crate) fn held(
    at: &RunLocation,
    copy: Option<&RunCopy>,
) -> mlflow_api::Result<(BTreeSet<String>, BTreeSet<String>)> {
    let Some(copy) = copy else { return Ok(Default::default()) };
    let held = if let Some(listed) = copy.listed_entries()? {
        listed.into_iter().collect()
    } else {
        let values = copy.clone().into_values().ok_or_else(|| unreadable(&copy.0, "the copy of a run"))?;
        let fields = copy.fields().map_or_else(|| Some(IndexedFields::default()), from_json);
        let fields = fields.ok_or_else(|| unreadable(&copy.0, "the fields of a copy"))?;
        run_entries(at, &values, &fields)?
    };
    Ok((held, copy.stale_entries()?.into_iter().collect()))
}
