//! `mlflow-serverless reindex`: rebuilds the search index while it is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use artifact_store::Archive;
use clap::Args;
use embedded_engine::Engine;
use entities::indexed_fields_setting::{
    ExperimentFieldPatterns, ExperimentFieldsSetting, IndexedFieldsSetting, LEASE_DURATION, MAX_EXPERIMENTS_WITH_FIELDS,
};
use entities::layout;
use entities::workspaces::Workspaces;
use fts_indexer::Indexer;
use indicatif::{ProgressBar, ProgressStyle};
use key_schema::rows;
use mlflow_api::ExperimentId;
use run_index::{MAX_ENTRIES_IN_MEMORY, RunIndex};
use runtime::clock::sleep;
use search::IndexedFields;
use table::Table;

use crate::Failure;
use crate::feed::{self, LocalIndexer, StreamFeed, TICK_INTERVAL};
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `reindex`.
#[derive(Args)]
pub(crate) struct Options {
    /// Rebuild only this experiment, and set patterns for it alone [default: all experiments].
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
    /// Set the fields that are indexed by value, as patterns such as 'tags.*' or '!tags.mlflow.*'.
    /// If several patterns match, the last one wins. Replaces the previous patterns.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    values: Vec<String>,
    /// Set the fields that are indexed by trigrams, as patterns such as 'tags.note' or 'params.*'.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    text: Vec<String>,
    /// Maximum number of runs that are waiting to be indexed, up to 20000. Searches read these runs
    /// from their documents, which is slower. A higher number speeds up the rebuild if the indexer
    /// collects changes for a long time [default: 30; 500 if no server uses the data directory; 1000 over
    /// DynamoDB].
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    at_once: Option<u32>,
    #[command(flatten)]
    place: TableOptions,
}

const SEARCH_WAIT_MESSAGE: &str = "waiting until no server relies on the previously indexed fields";
/// Maximum time that the indexer spends on one part of a batch without reading the setting again.
const MAX_BATCH_DURATION: Duration = Duration::from_mins(2);
/// Default limit of runs waiting to be indexed while a server uses the data. Each of these runs
/// slows down searches, which read its document and share the processors with the indexer. On two
/// cores, searches took about 1.5 times as long as on an idle server with 30 waiting runs, and twice
/// as long with 100 (`docs/measured/moving.md`).
const DEFAULT_WAITING_RUNS: u32 = 30;
/// Default limit while no server uses the data. There are no searches to slow down.
const DEFAULT_WAITING_RUNS_ALONE: u32 = 500;
/// Default limit for a table outside of the embedded engine. It is higher, because AWS collects
/// changes into batches before the indexer receives them.
const DEFAULT_WAITING_RUNS_REMOTE: u32 = 1_000;

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (table, engine) = options.place.connect().await?;
    layout::check(&table).await?;
    let part = match &options.experiment {
        None => ReindexTarget::Table(options.of_table(&read_setting(&table).await?)),
        Some(id) => {
            let id = ExperimentId::parse(id).map_err(|error| error.message)?;
            let fields = options.of_experiment(&read_setting(&table).await?, id);
            if fields.is_some() {
                check_experiment(&table, id).await?;
            }
            ReindexTarget::Experiment(id, fields)
        }
    };
    let archive = options.place.storage.archive()?;
    rebuild(&table, engine, &options.place.name, &archive, part, options.at_once).await
}

/// The part of the table to reindex, optionally with new fields to index.
#[derive(Clone, Debug)]
pub(crate) enum ReindexTarget {
    /// All runs of the table.
    Table(Option<IndexedFields>),
    /// The runs of one experiment.
    Experiment(ExperimentId, Option<ExperimentFieldPatterns>),
}

/// Maximum number of runs that are waiting to be indexed.
#[derive(Clone, Debug)]
pub(crate) enum WaitingLimit {
    Fixed(usize),
    /// The limit depends on whether this process reads the stream of the data directory, in which case no
    /// server uses the data.
    WhileReading(Arc<AtomicBool>),
}

impl WaitingLimit {
    /// Returns the current limit.
    fn current(&self) -> usize {
        match self {
            Self::Fixed(limit) => *limit,
            Self::WhileReading(flag) if flag.load(Ordering::Relaxed) => DEFAULT_WAITING_RUNS_ALONE as usize,
            Self::WhileReading(_) => DEFAULT_WAITING_RUNS as usize,
        }
    }
}

/// Reindexes runs, with at most `at_once` of them waiting at any time. Without this limit, it depends on
/// the table and on other processes.
pub(crate) async fn rebuild(
    table: &Table,
    engine: Option<Engine>,
    name: &str,
    archive: &Archive,
    part: ReindexTarget,
    at_once: Option<u32>,
) -> Result<(), Failure> {
    let table = table.clone().in_background();
    // Marks do not wait for the disk, because the command has to be repeated after a power cut
    // anyway. The fields that searches rely on are written last, and this write waits for the disk.
    let marked = engine.as_ref().map_or_else(|| table.clone(), |engine| feed::table_to_index(engine, name));
    let index = RunIndex::new(marked.in_background());
    // In AWS, the stack's indexer is already running. With the embedded engine, this process runs a
    // feed, which does nothing while the feed of a server is running.
    let layout = layout::of(&table).await?;
    let feed = engine.map(|engine| {
        let indexer = Indexer::new(feed::table_to_index(&engine, name)).with_layout(layout);
        let consumer = LocalIndexer(indexer.with_archive(archive.clone()).as_only_indexer());
        StreamFeed::start(engine, name.to_owned(), consumer, Duration::ZERO, TICK_INTERVAL)
    });
    let limit = match (at_once, &feed) {
        (Some(limit), _) => WaitingLimit::Fixed(limit as usize),
        (None, Some(feed)) => WaitingLimit::WhileReading(feed.is_reading()),
        (None, None) => WaitingLimit::Fixed(DEFAULT_WAITING_RUNS_REMOTE as usize),
    };
    let outcome = rebuild_with_indexer(&table, &index, part, &limit).await;
    if let Some(feed) = feed {
        feed.stop().await;
    }
    outcome
}

impl ReindexTarget {
    /// Changes the indexed fields, if the target has new ones, and returns the resulting setting.
    /// Searches stop relying on the old fields first. Only then may the indexer remove those
    /// fields. After this call, no batch in flight indexes the old fields.
    async fn change_fields(&self, table: &Table) -> Result<IndexedFieldsSetting, Failure> {
        let before = read_setting(table).await?;
        let own = |setting: &IndexedFieldsSetting, id| setting.own.get(id).cloned().unwrap_or_default();
        let changed = match self {
            Self::Table(None) | Self::Experiment(_, None) => {
                // Without new fields, nothing has to be changed, unless an earlier change was
                // interrupted. That may have happened just now, so the wait for batches in flight
                // is still necessary.
                if !self.is_between_fields(&before) {
                    return Ok(before);
                }
                before
            }
            Self::Table(Some(fields)) => {
                let searched = IndexedFields { values: Vec::new(), text: Vec::new() };
                let unused = IndexedFieldsSetting { searched, ..before.clone() };
                self.write(table, &before, &unused).await?;
                wait(SEARCH_WAIT_MESSAGE, LEASE_DURATION).await;
                let changed = IndexedFieldsSetting { indexed: fields.clone(), ..unused.clone() };
                self.write(table, &unused, &changed).await?;
                changed
            }
            Self::Experiment(id, Some(fields)) => {
                let mut unused = before.clone();
                unused.own.insert(
                    *id,
                    ExperimentFieldsSetting { searched: ExperimentFieldPatterns::nothing(), ..own(&before, id) },
                );
                self.write(table, &before, &unused).await?;
                wait(SEARCH_WAIT_MESSAGE, LEASE_DURATION).await;
                let mut changed = unused.clone();
                changed.own.insert(*id, ExperimentFieldsSetting { indexed: fields.clone(), ..own(&unused, id) });
                self.write(table, &unused, &changed).await?;
                changed
            }
        };
        wait("waiting until no batch in flight indexes the previous fields", MAX_BATCH_DURATION).await;
        Ok(changed)
    }

    /// Writes the changed setting, unless it was changed since `before` was read.
    async fn write(
        &self,
        table: &Table,
        before: &IndexedFieldsSetting,
        after: &IndexedFieldsSetting,
    ) -> Result<(), Failure> {
        let written = match self {
            Self::Table(_) => after.write_after(before, table).await,
            Self::Experiment(id, _) => write_own(table, *id, before, after).await,
        };
        match written {
            // An earlier attempt of this write has succeeded, and only its response was lost.
            Err(table::Failure::Refused { .. }) if self.is_the_same(&read_setting(table).await?, after) => Ok(()),
            Err(table::Failure::Refused { .. }) => {
                Err("another command has changed these fields. Wait until it has finished, and try again".into())
            }
            written => written.map_err(unwritten),
        }
    }

    fn is_the_same(&self, one: &IndexedFieldsSetting, other: &IndexedFieldsSetting) -> bool {
        match self {
            Self::Table(_) => (&one.indexed, &one.searched) == (&other.indexed, &other.searched),
            Self::Experiment(id, _) => one.own.get(id) == other.own.get(id),
        }
    }

    fn is_between_fields(&self, setting: &IndexedFieldsSetting) -> bool {
        match self {
            Self::Table(_) => setting.is_between_fields(),
            Self::Experiment(id, _) => setting.own.get(id).is_some_and(ExperimentFieldsSetting::is_between_fields),
        }
    }

    async fn experiments(&self, table: &Table, index: &RunIndex) -> Result<Vec<ExperimentId>, Failure> {
        if let Self::Experiment(id, _) = self {
            return Ok(vec![*id]);
        }
        let mut all = Vec::new();
        for workspace in Workspaces::new(table.clone()).names().await.map_err(|error| error.to_string())? {
            all.extend(index.experiments(&workspace).await.map_err(|failure| format!("{failure:?}"))?);
        }
        Ok(all)
    }

    /// Updates the setting so that searches use the indexed fields. This also completes an earlier
    /// change that was interrupted. All runs have been indexed with the setting `before`. If
    /// another command has changed the setting since, it is left to that command.
    async fn rely_on_fields(&self, table: &Table, before: &IndexedFieldsSetting) -> Result<(), Failure> {
        if let Self::Table(_) = self
            && before.indexed != before.searched
        {
            let settled = IndexedFieldsSetting { searched: before.indexed.clone(), ..before.clone() };
            if let Err(failure) = settled.write_after(before, table).await {
                ignore_failed_condition(failure)?;
            }
        }
        for (id, own) in &before.own {
            let is_of_it = match self {
                Self::Table(_) => true,
                Self::Experiment(this, _) => this == id,
            };
            if is_of_it && own.is_between_fields() {
                let mut settled = before.clone();
                settled.own.insert(*id, ExperimentFieldsSetting { searched: own.indexed.clone(), ..own.clone() });
                if let Err(failure) = write_own(table, *id, before, &settled).await {
                    ignore_failed_condition(failure)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes the setting of an experiment, unless it was changed since `before` was read.
async fn write_own(
    table: &Table,
    id: ExperimentId,
    before: &IndexedFieldsSetting,
    after: &IndexedFieldsSetting,
) -> table::Result<()> {
    let own = |setting: &IndexedFieldsSetting| setting.own.get(&id).cloned().unwrap_or_default();
    own(after).write_after(&own(before), table, id).await
}

/// Ignores a failed condition: another command has changed the setting, or the response to this
/// command's own write was lost.
fn ignore_failed_condition(failure: table::Failure) -> Result<(), Failure> {
    match failure {
        table::Failure::Refused { .. } => Ok(()),
        failure => Err(unwritten(failure)),
    }
}

/// Checks whether an experiment can have indexed fields of its own: it must exist, and their number
/// is limited.
pub(crate) async fn check_experiment(table: &Table, experiment: ExperimentId) -> Result<(), Failure> {
    let found = table.get(&rows::Experiment::key(&experiment)).await;
    if found.map_err(|failure| format!("cannot read the experiment: {failure:?}"))?.is_none() {
        return Err(experiment.not_found().message.into());
    }
    let own = read_setting(table).await?.own;
    if own.len() >= MAX_EXPERIMENTS_WITH_FIELDS && !own.contains_key(&experiment) {
        return Err(format!("at most {MAX_EXPERIMENTS_WITH_FIELDS} experiments may have fields of their own").into());
    }
    Ok(())
}

async fn rebuild_with_indexer(
    table: &Table,
    index: &RunIndex,
    part: ReindexTarget,
    limit: &WaitingLimit,
) -> Result<(), Failure> {
    let count = index_rebuild::count(table, index, &part).await?;
    let setting = part.change_fields(table).await?;
    let experiments = part.experiments(table, index).await?;

    let (indexed, runs) = index_rebuild::reindex_experiments(index, &experiments, limit, count).await?;
    if let Some(one) = &runs.unindexed_example {
        // Runs that were not indexed stay marked as changed, so searches still read their
        // documents.
        print_line(&format!(
            "{} runs could not be indexed, for example {one}. The indexer's log has the reason",
            runs.unindexed_count
        ));
    }

    let bar = spinner("stray entries removed");
    for experiment in &experiments {
        let swept = index.sweep(*experiment, MAX_ENTRIES_IN_MEMORY).await;
        bar.inc(swept.map_err(|failure| format!("cannot remove stray index entries: {failure:?}"))? as u64);
    }
    let swept = bar.position();
    bar.finish_and_clear();
    part.rely_on_fields(table, &setting).await?;
    print_line(&format!("{indexed} runs of {} experiments indexed, {swept} stray entries removed", experiments.len()));
    Ok(())
}

/// Prefixes of a run's fields.
const FIELD_PREFIXES: [&str; 4] = ["attributes.", "tags.", "params.", "datasets."];

/// Validates a pattern: it must be able to match a field of a run.
pub(crate) fn pattern(text: &str) -> Result<String, String> {
    let wanted = text.strip_prefix('!').unwrap_or(text);
    let (begin, is_whole) = wanted.split_once('*').map_or((wanted, true), |(begin, _)| (begin, false));
    let fits = |field: &str| begin.starts_with(field) || (!is_whole && field.starts_with(begin));
    if FIELD_PREFIXES.iter().any(|field| fits(field)) {
        return Ok(text.to_owned());
    }
    Err(format!("no field of a run can match this pattern. Fields begin with {}", FIELD_PREFIXES.join(", ")))
}

impl Options {
    /// Returns the fields to index from now on, or `None` if they do not change.
    fn of_table(&self, present: &IndexedFieldsSetting) -> Option<IndexedFields> {
        Some(self.given_fields()?.over(&present.indexed))
    }

    /// Returns an experiment's fields to index from now on, or `None` if they do not change.
    fn of_experiment(
        &self,
        present: &IndexedFieldsSetting,
        experiment: ExperimentId,
    ) -> Option<ExperimentFieldPatterns> {
        let given = self.given_fields()?;
        let old = present.own.get(&experiment).map(|own| own.indexed.clone()).unwrap_or_default();
        Some(ExperimentFieldPatterns { values: given.values.or(old.values), text: given.text.or(old.text) })
    }

    /// Returns the patterns on the command line, or `None` if there are none.
    fn given_fields(&self) -> Option<ExperimentFieldPatterns> {
        let given = |patterns: &[String]| (!patterns.is_empty()).then(|| patterns.to_vec());
        Some(ExperimentFieldPatterns { values: given(&self.values), text: given(&self.text) })
            .filter(|given| !given.is_empty())
    }
}

async fn read_setting(table: &Table) -> Result<IndexedFieldsSetting, Failure> {
    IndexedFieldsSetting::read(table).await.map_err(|failure| format!("cannot read the setting: {failure:?}").into())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
fn unwritten(failure: table::Failure) -> Failure {
    format!("cannot write the setting: {failure:?}").into()
}

async fn wait(why: &'static str, time: Duration) {
    let bar = spinner(why);
    sleep(time).await;
    bar.finish_and_clear();
}

fn spinner(of: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(of);
    if let Ok(style) = style("{spinner} {pos} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> Result<ProgressStyle, Failure> {
    Ok(ProgressStyle::with_template(template)?)
}

mod index_rebuild;
#[cfg(test)]
mod tests;
